package applicationinstallation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

func TestDiffers_takesNoNoticeOfAStatus(t *testing.T) {
	was := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
	cases := map[string]struct {
		change func(*v1alpha1.ApplicationDefinition)
		want   bool
	}{
		"status": {func(d *v1alpha1.ApplicationDefinition) { d.Status.Clusters = 2 }, false},
		"spec":   {func(d *v1alpha1.ApplicationDefinition) { d.Generation = 2 }, true},
		"force": {func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
		}, true},
		"deletion": {func(d *v1alpha1.ApplicationDefinition) { d.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			is.ResourceVersion = "2"
			tc.change(is)
			assert.Equal(t, tc.want, differs(was, is))
		})
	}
}
