package dashboard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// What is installed in another version than the default one is marked, and lists are narrowed down to it; for a viewer who may
// not see the definition, there is no default.
func TestFleet_behind(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	offered := func(name string, users ...v1alpha1.VersionUsage) *v1alpha1.ApplicationDefinition {
		d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + ns}}
		d.Spec.DefaultVersion = "2.0.0"
		for _, version := range []string{"2.0.0", "1.0.0"} {
			d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: version, Template: chartTemplate()})
		}
		d.Status.UsedBy = users
		return d
	}
	behind := offered("web", v1alpha1.VersionUsage{Version: "v2.0.0", Count: 1}, v1alpha1.VersionUsage{Version: "1.0.0", Count: 2})
	create(t, api, behind, offered("db"),
		cluster(ns, "ahead", installed(behind.Name, "v2.0.0", metav1.ConditionTrue)),
		cluster(ns, "late", installed(behind.Name, "2.0.0", metav1.ConditionTrue), installed(behind.Name, "1.0.0", metav1.ConditionTrue)),
		cluster(ns, "other", installed("unknown-"+ns, "1.0.0", metav1.ConditionTrue)))
	b := open(t, api.RESTConfig(), ns)
	all := b.get("/?text=" + ns).text()
	for _, name := range []string{"ahead", "late", "other"} {
		assert.Contains(t, all, ">"+name+"</a>")
	}
	late := b.get("/?state=behind&text=" + ns).text()
	assert.Contains(t, late, ">late</a>")
	assert.NotContains(t, late, ">ahead</a>", "v2.0.0 is 2.0.0")
	assert.NotContains(t, late, ">other</a>", "there is no such definition")
	assert.Contains(t, b.get(objectLink("", "", "kubernetesclusters", ns, "late")).text(), "1.0.0 (default 2.0.0)")

	catalog := b.get("/catalog?text=" + ns).text()
	assert.Contains(t, catalog, "3 installed, 2 not in the default version")
	assert.Contains(t, catalog, "db-"+ns)
	assert.NotContains(t, b.get("/catalog?state=behind&text="+ns).text(), "db-"+ns)

	user := open(t, reader(t, api, ns), ns)
	assert.NotContains(t, user.get("/?text="+ns).text(), "the default version is")
	assert.Contains(t, user.get("/?state=behind").text(), "You may not list and watch ApplicationDefinitions")
}

// offering returns a definition with these versions, the first of which is the default one.
func offering(name string, versions ...string) offers {
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.DefaultVersion = versions[0]
	for _, version := range versions {
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: version})
	}
	return offers{name: d}
}

func TestNewCell_saysTheDefault(t *testing.T) {
	k := cluster("a", "berlin", installed("web", "1.0.0", metav1.ConditionTrue))
	g := newGrid([]*v1alpha1.KubernetesCluster{k}, nil, 0, offering("web", "2.0.0"))
	assert.Equal(t, "1.0.0: Ready; the default version is 2.0.0", g.Rows[0].Cells[0].Title())
	g = newGrid([]*v1alpha1.KubernetesCluster{k}, nil, 0, offering("web", "v1.0.0"))
	assert.Equal(t, "1.0.0: Ready", g.Rows[0].Cells[0].Title())
	assert.Empty(t, offering("web", "2.0.0").other("web", ""), "what is not installed yet has no version")
}

// K69: who runs a cluster says which versions it has: one that is not offered is newer than no other.
func TestNewGrid_newestThatIsOffered(t *testing.T) {
	clusters := []*v1alpha1.KubernetesCluster{
		cluster("a", "liar", installed("web", "999.0.0", metav1.ConditionTrue)),
		cluster("a", "late", installed("web", "1.0.0", metav1.ConditionTrue)),
		cluster("a", "well", installed("web", "v2.0.0", metav1.ConditionTrue)),
	}
	for name, tc := range map[string]struct {
		reason     string
		offered    offers
		newest     string
		late, well bool
	}{
		"Offered":    {"the definition has no such version", offering("web", "2.0.0", "1.0.0"), "v2.0.0", true, false},
		"NotVisible": {"what is offered is not for the viewer to see", offering("db", "1.0.0"), "999.0.0", true, true},
		"Nothing":    {"none of the versions is there any more", offering("web", "3.0.0"), "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrid(clusters, nil, 0, tc.offered)
			assert.Equal(t, tc.newest, g.Columns[0].Newest, tc.reason)
			assert.Equal(t, tc.late, g.Rows[1].Cells[0].Behind, tc.reason)
			assert.Equal(t, tc.well, g.Rows[2].Cells[0].Behind, tc.reason)
		})
	}
}
