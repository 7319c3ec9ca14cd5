package kubernetesapplicationresource

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
)

// What is made again because it was deleted is a correction as well as what is changed back.
func TestTake_corrections(t *testing.T) {
	cases := map[string]struct {
		change apply.Change
		want   bool
	}{
		"Created":    {apply.Change{Action: apply.Created}, false},
		"MadeAgain":  {apply.Change{Action: apply.Created, Again: true}, true},
		"Configured": {apply.Change{Action: apply.Configured}, false},
		"Corrected":  {apply.Change{Action: apply.Corrected}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &work{scope: &scope{kar: &v1alpha1.KubernetesApplicationResource{}}}
			assert.Equal(t, tc.want, w.take(apply.Result{Changes: []apply.Change{tc.change}}).corrected)
		})
	}
}

// W53, C41: what a job declared is deleted too, also while the status that was read is older.
func TestLeaving_includesWhatJobsDeclared(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	s := &scope{kar: kar, last: &submission{}}
	s.last.inventory = []manifest.ID{s.object(), s.copyID("one")}
	leaving, staying := s.leaving(nil)
	assert.ElementsMatch(t, s.last.inventory, leaving)
	assert.Empty(t, staying)
}
