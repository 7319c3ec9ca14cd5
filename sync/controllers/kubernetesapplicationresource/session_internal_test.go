package kubernetesapplicationresource

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/manifest"
)

// W53, C41: what a job declared is deleted too, also while the status that was read is older.
func TestLeaving_includesWhatJobsDeclared(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	s := &scope{kar: kar, session: &session{delivery: &delivery.Delivery{}}}
	declared := []manifest.ID{s.object(), s.copyID("one")}
	s.session.delivery.Declare(declared)
	leaving, staying := s.leaving(nil)
	assert.ElementsMatch(t, declared, leaving)
	assert.Empty(t, staying)
}

// An object counts as placed when a job has applied it, and not before: its Secrets come first.
func TestPlacedBy(t *testing.T) {
	s := &scope{kar: &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}
	object := s.object()
	cases := map[string]struct {
		reason string
		got    apply.Result
		want   bool
	}{
		"applied":       {"it is there", apply.Result{Inventory: []manifest.ID{object}}, true},
		"refused":       {"it was tried only", apply.Result{Inventory: []manifest.ID{object}, Problems: []manifest.Problem{{ID: object}}}, false},
		"waiting":       {"its Secrets are not there yet", apply.Result{Inventory: []manifest.ID{object}, Waiting: []manifest.ID{object}}, false},
		"not answered":  {"nobody knows", apply.Result{Inventory: []manifest.ID{object}, Err: assert.AnError}, false},
		"nothing there": {"there was no job", apply.Result{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, placed := s.placedBy(tc.got)
			assert.Equal(t, tc.want, placed, tc.reason)
		})
	}
}
