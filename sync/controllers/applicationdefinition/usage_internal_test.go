package applicationdefinition

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C28: what an installation calls v1.0.0 and the definition 1.0.0 must not be removed while it is in use.
func TestUsage_countsUnderTheNameOfTheDefinition(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	definition.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}
	cluster := v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "berlin"}}
	cluster.Status.Installations = []v1alpha1.InstallationSummary{
		{Namespace: "a", Name: "one", Definition: "web", Version: "v1.0.0"},
		{Namespace: "a", Name: "two", Definition: "web", Version: "1.0.0"},
		{Namespace: "a", Name: "gone", Definition: "web", Version: "v0.9.0"},
	}
	assert.Equal(t, []v1alpha1.VersionUsage{
		{Version: "1.0.0", Count: 2, Installations: []string{"hub/berlin/a/one", "hub/berlin/a/two"}},
		{Version: "v0.9.0", Count: 1, Installations: []string{"hub/berlin/a/gone"}},
	}, usage(definition, []v1alpha1.KubernetesCluster{cluster}))
}

// C47: what is installed in the clusters of a seed counts like what is in a cluster of the hub.
func TestUsage_countsThroughSeeds(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	definition.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}
	definition.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	seed := v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "europe"}}
	seed.Spec.Role = v1alpha1.ClusterRoleSeed
	seed.Status.Usage = []v1alpha1.DefinitionUsage{
		{Definition: "web", VersionUsage: v1alpha1.VersionUsage{Version: "v1.0.0", Count: 25, Installations: []string{"x/berlin/a/one"}}},
		{Definition: "db", VersionUsage: v1alpha1.VersionUsage{Version: "1.0.0", Count: 1, Installations: []string{"x/berlin/a/two"}}},
	}
	more := *seed.DeepCopy()
	more.Name = "more"
	more.Status.Usage[0].Count = math.MaxInt32
	assert.Equal(t, []v1alpha1.VersionUsage{
		{Version: "1.0.0", Count: math.MaxInt32, Installations: []string{"hub/europe/x/berlin/a/one", "hub/more/x/berlin/a/one"}},
	}, usage(definition, []v1alpha1.KubernetesCluster{seed, more}), "and no sum overflows")

	after := seed.DeepCopy()
	after.Status.Usage[1].Count++
	assert.Equal(t, []string{"db"}, reused(&seed.Status, &after.Status))
}

// A cluster says what it likes: what it invents must not keep the status of a definition from being written.
func TestUsage_fitsIntoAStatus(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	cluster := v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "berlin"}}
	use := func(version string) {
		cluster.Status.Installations = append(cluster.Status.Installations, v1alpha1.InstallationSummary{
			Namespace: strings.Repeat("n", 250), Name: fmt.Sprintf("%s%04d", strings.Repeat("x", 240), len(cluster.Status.Installations)), Definition: "web", Version: version,
		})
	}
	for i := range 100 {
		version := fmt.Sprintf("1.0.%d", i)
		definition.Spec.Versions = append(definition.Spec.Versions, v1alpha1.ApplicationVersion{Version: version})
		for range maxUsers {
			use(version)
		}
		use(fmt.Sprintf("0.0.%d", i)) // invented
	}
	got := usage(definition, []v1alpha1.KubernetesCluster{cluster})
	offered, invented, size := 0, 0, 0
	for _, one := range got {
		if definition.GetVersion(one.Version) == nil {
			invented++
		} else {
			offered++
			assert.EqualValues(t, maxUsers, one.Count, "they count, also where their names are left out")
		}
		for _, name := range one.Installations {
			size += len(name)
		}
	}
	assert.Equal(t, 100, offered, "a version that is in use must not be removed")
	assert.Equal(t, maxUnknown, invented)
	assert.LessOrEqual(t, size, maxUsersSize)
	assert.Greater(t, size, maxUsersSize/2)
}
