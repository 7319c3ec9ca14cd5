package dashboard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// A server that answers a watch of one object with others has them take no memory.
func TestAddress_alone(t *testing.T) {
	at := address{namespace: "team", name: "web"}
	for _, name := range []string{"web", "other"} {
		sent := &v1alpha1.GitSync{}
		sent.Namespace, sent.Name, sent.ResourceVersion, sent.Spec.URL = "elsewhere", name, "7", "https://example.com"
		kept, err := at.alone(sent)
		assert.NoError(t, err)
		assert.Equal(t, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "team", "name": "web", "resourceVersion": "7"},
		}}, kept)
	}
}

// A page says whether what it shows is as it is now.
func TestFollow_states(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "gitsyncs"}, "", errors.New("no rights"))
	away := errors.New("connection refused")
	changes := 0
	f := newFollow(nil, &v1alpha1.GitSync{}, func() client.ObjectList { return &v1alpha1.GitSyncList{} }, func(string, string) { changes++ })
	known := &v1alpha1.GitSync{}
	known.Name = "catalog"
	assert.NoError(t, f.informer.GetStore().Add(known))
	assert.Equal(t, connecting, f.stands().State)
	for _, step := range []struct {
		reason  string
		err     error
		want    state
		changes int
		shown   int
	}{
		{"it answers", nil, live, 1, 1},
		{"nothing has changed", nil, live, 1, 1},
		{"the hub is away: what was read is shown", away, lost, 2, 1},
		{"it still is", away, lost, 2, 1},
		{"an expired watch is an answer", apierrors.NewResourceExpired("too old"), live, 3, 1},
		{"rights are withdrawn: nothing is shown", denied, forbidden, 4, 0},
		{"and given back", nil, live, 5, 1},
	} {
		f.answered(step.err)
		s := f.stands()
		assert.Equal(t, step.want, s.State, step.reason)
		assert.Equal(t, step.changes, changes, step.reason)
		assert.Len(t, objects[*v1alpha1.GitSync](f), step.shown, step.reason)
		assert.Equal(t, s.State == lost, !s.Since.IsZero(), step.reason)
		assert.Equal(t, s.State == live, s.Message == "", step.reason)
	}
}
