package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// Of an object its status is remembered and nothing else, and not shared.
func TestRemember_keepsTheStatusAlone(t *testing.T) {
	k := NewKernel(time.Second, time.Second)
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "7"}}
	gs.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "written"}}
	k.remember(gs)
	gs.Status.Conditions[0].Message = "changed since"
	assert.IsType(t, &v1alpha1.GitSyncStatus{}, k.known.Get("1").status)

	for range 2 {
		cached := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "6"}}
		k.Begin(nil, nil, cached)
		assert.Equal(t, "7", cached.ResourceVersion)
		assert.Equal(t, "written", cached.Status.Conditions[0].Message)
		cached.Status.Conditions[0].Message = "changed by the pass"
	}
}
