package application

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
)

var shopKey = types.NamespacedName{Namespace: "blog", Name: "shop"}

// surveyed is the scope of an Application that selects everything, and an object of it.
func surveyed(t *testing.T) (*scope, *tracker.Object) {
	t.Helper()
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: shopKey.Namespace, Name: shopKey.Name, UID: "uid"}}
	app.Spec.Selector = &metav1.LabelSelector{}
	s := &scope{app: app, key: shopKey, entry: prepare(app, nil)}
	require.NoError(t, s.entry.err)
	return s, &tracker.Object{Ref: tracker.Ref{
		GroupKind:      schema.GroupKind{Group: "example.com", Kind: "Widget"},
		NamespacedName: types.NamespacedName{Namespace: shopKey.Namespace, Name: "one"},
	}}
}

// An object that is on its way out is annotated no more, so no user is told that it will be.
func TestStranger_thatIsBeingDeleted(t *testing.T) {
	r := &Reconciler{keeper: ownership.New(ownership.Options{})}
	s, o := surveyed(t)
	assert.Equal(t, "exists, and is about to be annotated", s.stranger(r, o))
	o.Deleting = true
	assert.Equal(t, "exists, but is being deleted", s.stranger(r, o))
}

// brokenDiscovery is an API server of which it is not known what it serves.
type brokenDiscovery struct{ meta.RESTMapper }

func (b brokenDiscovery) Mapper() meta.RESTMapper    { return b }
func (brokenDiscovery) Metadata() metadata.Interface { return nil }
func (brokenDiscovery) Dynamic() dynamic.Interface   { return nil }
func (brokenDiscovery) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("it is broken")
}

// What is known of an object counts no more when its kind cannot be seen.
func TestInstalled_ofAKindThatCannotBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{tracker: tracker.New(t.Context(), brokenDiscovery{}, tracker.Options{})}
		s, o := surveyed(t)
		o.Owners = []metav1.OwnerReference{{UID: s.app.UID}}
		r.tracker.Want(shopKey, sets.New(o.GroupKind))
		<-time.After(time.Minute)
		require.Equal(t, tracker.Failing, r.tracker.State(o.GroupKind).Phase)

		assert.Equal(t, v1alpha1.ComponentStatus{
			Group: "example.com", Kind: "Widget", Name: "one", Installed: true, Owned: true,
			Health: string(health.Unknown), Message: "find kind Widget.example.com: it is broken",
		}, s.installed(r, o))
		assert.Empty(t, s.denied, "no right is missing")
	})
}

// C7, C42: what the last status says of objects that cannot be seen is not forgotten by a process
// that has just started: what was installed and owned still is, listed or not.
func TestSurvey_remembersWhatCannotBeSeen(t *testing.T) {
	widget := func(name string) v1alpha1.ApplicationComponent {
		return v1alpha1.ApplicationComponent{Group: "example.com", Kind: "Widget", Name: name}
	}
	status := func(name string, installed, owned bool, message string) v1alpha1.ComponentStatus {
		return v1alpha1.ComponentStatus{
			Group: "example.com", Kind: "Widget", Name: name, Installed: installed, Owned: owned,
			Health: string(health.Unknown), Message: message,
		}
	}
	const why = "find kind Widget.example.com: it is broken"
	const gone = "is no longer a component, and its state is unknown: " + why
	for name, tc := range map[string]struct {
		listed []v1alpha1.ApplicationComponent
		want   []v1alpha1.ComponentStatus
	}{
		"listed by name": {
			[]v1alpha1.ApplicationComponent{widget("gone"), widget("one")},
			[]v1alpha1.ComponentStatus{status("gone", false, false, why), status("one", true, true, why)},
		},
		"listed by kind": {
			[]v1alpha1.ApplicationComponent{widget("")},
			[]v1alpha1.ComponentStatus{status("one", true, true, why)},
		},
		"another is listed": {
			[]v1alpha1.ApplicationComponent{widget("two")},
			[]v1alpha1.ComponentStatus{status("one", false, true, gone), status("two", false, false, why)},
		},
		"not listed": {nil, []v1alpha1.ComponentStatus{status("one", false, true, gone)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{keeper: ownership.New(ownership.Options{})}
			synctest.Test(t, func(t *testing.T) {
				s, o := surveyed(t)
				r.tracker = tracker.New(t.Context(), brokenDiscovery{}, tracker.Options{})
				r.tracker.Want(shopKey, sets.New(o.GroupKind))
				<-time.After(time.Minute)
				require.Equal(t, tracker.Failing, r.tracker.State(o.GroupKind).Phase)

				s.app.Spec.Components = tc.listed
				s.app.Status.Components = []v1alpha1.ComponentStatus{status("gone", false, false, ""), status("one", true, true, "")}
				s.entry = prepare(s.app, nil)
				for range 2 { // also in the next pass
					r.survey(s)
					assert.Equal(t, tc.want, s.app.Status.Components)
				}
			})
		})
	}
}
