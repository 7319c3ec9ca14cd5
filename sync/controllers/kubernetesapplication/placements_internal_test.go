package kubernetesapplication

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

func placedApp(uid types.UID, cluster string, templates int) *v1alpha1.KubernetesApplication {
	return &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{UID: uid},
		Spec:       v1alpha1.KubernetesApplicationSpec{ClusterName: cluster, ResourceTemplates: make([]v1alpha1.ResourceTemplate, templates)},
	}
}

// W36: a decision counts from when it is made, also while caches do not show it.
func TestPlacements_countsWhatWasDecided(t *testing.T) {
	l := newPlacements()
	web := types.NamespacedName{Namespace: "team", Name: "web"}
	placed := func(cluster string) (n int) {
		l.assume(types.NamespacedName{Namespace: "team", Name: "probe"}, placedApp("probe", "", 0), func(placed func(string) int) string {
			n = placed(cluster)
			return ""
		})
		return n
	}
	l.assume(web, placedApp("1", "", 3), func(func(string) int) string { return "oslo" })
	assert.True(t, l.assumed(web, "1"))
	assert.Equal(t, 3, placed("oslo"))

	l.note(web, placedApp("1", "", 3))
	assert.Equal(t, 3, placed("oslo"), "a cache that is behind takes nothing back")
	l.note(web, placedApp("1", "oslo", 5))
	assert.False(t, l.assumed(web, "1"))
	assert.Equal(t, 5, placed("oslo"), "templates were added")

	l.note(types.NamespacedName{Namespace: "other", Name: "web"}, placedApp("2", "oslo", 7))
	assert.Equal(t, 5, placed("oslo"), "a cluster of another namespace is another")

	l.assume(web, placedApp("1", "", 3), func(func(string) int) string { return "oslo" })
	l.note(web, placedApp("3", "", 3))
	assert.False(t, l.assumed(web, "3"), "another application of that name")
	assert.Zero(t, placed("oslo"))
	l.forget(web)
	assert.Zero(t, placed("oslo"))
}
