package kubernetescluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

func usedCopy(name, hub string, used ...v1alpha1.VersionUsage) v1alpha1.ApplicationDefinition {
	d := v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.CopyOfAnnotation: hub}}}
	d.Status.UsedBy = used
	return d
}

// C47: only what the copies of this hub are used by counts, and a seed may send anything.
func TestUsage_ofASeed(t *testing.T) {
	good := v1alpha1.VersionUsage{Version: "1.0.0", Count: 2, Installations: []string{"x/berlin/a/one", "x/berlin/a/two"}}
	cases := map[string]struct {
		reason string
		copies []v1alpha1.ApplicationDefinition
		want   []v1alpha1.DefinitionUsage
		count  int32
	}{
		"Sorted": {"the status is written only if something changed", []v1alpha1.ApplicationDefinition{
			usedCopy("web", "hub", v1alpha1.VersionUsage{Version: "2", Count: 1}, good), usedCopy("db", "hub", good), usedCopy("idle", "hub"),
		}, []v1alpha1.DefinitionUsage{
			{Definition: "db", VersionUsage: good}, {Definition: "web", VersionUsage: good}, {Definition: "web", VersionUsage: v1alpha1.VersionUsage{Version: "2", Count: 1}},
		}, 5},
		"OfAnother": {"the seed's own, and those of another hub", []v1alpha1.ApplicationDefinition{usedCopy("web", "other", good), usedCopy("db", "", good)}, nil, 0},
		"Names": {"what is not a name is not shown to people", []v1alpha1.ApplicationDefinition{
			usedCopy("a\x1b[31m", "hub", good),
			usedCopy("web", "hub", v1alpha1.VersionUsage{Version: "1\n2", Count: 1}, v1alpha1.VersionUsage{Version: strings.Repeat("1", 129), Count: 1},
				v1alpha1.VersionUsage{Version: "3", Count: 1, Installations: []string{"one", "a/b/c/d/e", "a/b/c/\x1b", "x/y/z/" + strings.Repeat("n", 254), "a/b/c/d"}}),
		}, []v1alpha1.DefinitionUsage{{Definition: "web", VersionUsage: v1alpha1.VersionUsage{Version: "3", Count: 1, Installations: []string{"a/b/c/d"}}}}, 1},
		"Counts": {"no sum overflows, and a list is not longer than its count", []v1alpha1.ApplicationDefinition{
			usedCopy("a", "hub", v1alpha1.VersionUsage{Version: "1", Count: -1}, v1alpha1.VersionUsage{Version: "2", Count: 1<<31 - 1},
				v1alpha1.VersionUsage{Version: "3", Count: 1, Installations: good.Installations}),
		}, []v1alpha1.DefinitionUsage{
			{Definition: "a", VersionUsage: v1alpha1.VersionUsage{Version: "2", Count: maxUserCount}},
			{Definition: "a", VersionUsage: v1alpha1.VersionUsage{Version: "3", Count: 2, Installations: good.Installations}},
		}, maxUserCount + 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			used, count := usage(tc.copies, "hub")
			assert.Equal(t, tc.want, used, tc.reason)
			assert.Equal(t, tc.count, count)
		})
	}
}

// C47
func TestUsage_ofASeedFitsIntoAStatus(t *testing.T) {
	long := strings.Repeat("n", 240)
	many := v1alpha1.VersionUsage{Count: 100}
	for i := range 100 {
		many.Installations = append(many.Installations, fmt.Sprintf("%s/%s/%s/%d", long, long, long, i))
	}
	var copies []v1alpha1.ApplicationDefinition
	for d := range 50 {
		one := usedCopy(fmt.Sprintf("app-%02d", d), "hub")
		for v := range 100 {
			many.Version = fmt.Sprint(v)
			one.Status.UsedBy = append(one.Status.UsedBy, many)
		}
		copies = append(copies, one)
	}
	used, count := usage(copies, "hub")
	assert.Len(t, used, maxUses)
	assert.Equal(t, int32(100*maxUses), count)
	size := 0
	for _, u := range used {
		assert.LessOrEqual(t, len(u.Installations), maxUsers)
		size += len(strings.Join(u.Installations, ""))
	}
	assert.LessOrEqual(t, size, maxUsersSize)
	assert.Positive(t, size)
}

// C47: what the clusters of a seed lack goes up in short, and a seed may send anything.
func TestLacking_ofASeed(t *testing.T) {
	lacks := func(name, hub string, clusters ...v1alpha1.UnprovidedCluster) v1alpha1.ApplicationDefinition {
		d := usedCopy(name, hub)
		d.Status.Unprovided = clusters
		return d
	}
	berlin := v1alpha1.UnprovidedCluster{Cluster: "x/berlin", Problem: "it is taken"}
	originals := []v1alpha1.ApplicationDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "2"}}}
	cases := map[string]struct {
		reason string
		copies []v1alpha1.ApplicationDefinition
		want   []v1alpha1.ProvidedDefinition
	}{
		"Sorted": {"the status is written only if something changed",
			[]v1alpha1.ApplicationDefinition{lacks("web", "hub", berlin, v1alpha1.UnprovidedCluster{Cluster: "x/dublin"}), lacks("db", "hub", berlin)},
			[]v1alpha1.ProvidedDefinition{{Name: "db", UID: "2", Problem: "x/berlin: it is taken"}, {Name: "web", UID: "1", Problem: "x/berlin: it is taken (and 1 more)"}}},
		"None":      {"all is well", []v1alpha1.ApplicationDefinition{lacks("web", "hub")}, nil},
		"OfAnother": {"the seed's own, and those of another hub", []v1alpha1.ApplicationDefinition{lacks("web", "other", berlin), lacks("db", "", berlin)}, nil},
		"Gone":      {"the hub has it no more", []v1alpha1.ApplicationDefinition{lacks("gone", "hub", berlin)}, nil},
		"Text": {"what is not a name is not shown to people, and a problem is one short line",
			[]v1alpha1.ApplicationDefinition{lacks("web", "hub", v1alpha1.UnprovidedCluster{Cluster: "a\x1b[31m", Problem: "a"},
				v1alpha1.UnprovidedCluster{Cluster: "x/berlin", Problem: "\x1b[2J\n" + strings.Repeat("p", 1000)})},
			[]v1alpha1.ProvidedDefinition{{Name: "web", UID: "1", Problem: "x/berlin: [2J" + strings.Repeat("p", 250) + "... (and 1 more)"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, lacking(tc.copies, originals, "hub"), tc.reason) })
	}
}
