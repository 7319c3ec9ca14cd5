package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/data/restore"
)

// C64, S99: only a volume that was made for a claim has the data that the claim was created from.
func TestProvisioned_forJustThisClaim(t *testing.T) {
	now := metav1.Now()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "01234567-89ab", CreationTimestamp: now}}
	volume := func(name string, age time.Duration, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)),
				Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "csi.example.com"},
			},
			Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: claim.UID}},
		}
		for _, c := range change {
			c(pv)
		}
		return pv
	}
	for reason, test := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"named after the claim":                         {volume("pvc-01234567-89ab", 0), true},
		"the clocks of API servers differ":              {volume("pvc-01234567-89ab", time.Minute), true},
		"a prefix and a number are configured":          {volume("disk-17", -time.Second), true},
		"timestamps have seconds":                       {volume("disk-17", 0), true},
		"it was left over from another claim":           {volume("pvc-fedcba98-7654", time.Minute), false},
		"an administrator has created it":               {volume("disk-17", 0, func(pv *corev1.PersistentVolume) { pv.Annotations = nil }), false},
		"it is bound to another claim":                  {volume("disk-17", 0, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }), false},
		"it is bound to no claim, in spite of its name": {volume("pvc-01234567-89ab", 0, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), false},
	} {
		assert.Equal(t, test.want, restore.Provisioned(test.pv, claim), reason)
	}
}
