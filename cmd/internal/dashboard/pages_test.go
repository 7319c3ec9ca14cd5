package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func ready(status metav1.ConditionStatus, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: status, Reason: "Test", Message: message, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}
}

func installed(definition, version string, status metav1.ConditionStatus) v1alpha1.InstallationSummary {
	return v1alpha1.InstallationSummary{Namespace: "team", Name: definition, Definition: definition, Version: version, Ready: status}
}

func cluster(namespace, name string, installations ...v1alpha1.InstallationSummary) *v1alpha1.KubernetesCluster {
	k := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"env": "prod"}}}
	k.Status.Conditions = ready(metav1.ConditionTrue, "connected")
	k.Status.Installations, k.Status.InstallationCount = installations, int32(len(installations))
	return k
}

// K69: applications by cluster, with what is behind and what is not well.
func TestNewGrid(t *testing.T) {
	clusters := []*v1alpha1.KubernetesCluster{
		cluster("a", "berlin", installed("web", "1.0.0", metav1.ConditionTrue), installed("db", "2.0.0", metav1.ConditionFalse)),
		cluster("a", "paris", installed("web", "1.10.0", metav1.ConditionUnknown),
			v1alpha1.InstallationSummary{Namespace: "other", Name: "web2", Definition: "web", Version: "1.9.0", Ready: metav1.ConditionFalse}),
	}
	g := newGrid(clusters, url.Values{}, 0, nil)
	require.Len(t, g.Columns, 2)
	assert.Equal(t, "web", g.Columns[0].Definition, "it is in most clusters")
	assert.Equal(t, "1.10.0", g.Columns[0].Newest, "as versions, not as words")
	berlin, paris := g.Rows[0].Cells, g.Rows[1].Cells
	assert.True(t, berlin[0].Behind)
	assert.Equal(t, markFailing, berlin[1].Mark)
	assert.Equal(t, cell{}, paris[1], "it is not installed")
	assert.Equal(t, "1.9.0", paris[0].Version, "the one that is not well is shown")
	assert.Equal(t, 1, paris[0].More)
	assert.Equal(t, "/objects/a/paris/applicationinstallations/other/web2", paris[0].Link)
}

func TestNewGrid_isBounded(t *testing.T) {
	var clusters []*v1alpha1.KubernetesCluster
	for i := range 1000 {
		clusters = append(clusters, cluster("a", fmt.Sprintf("c%04d", i), installed(fmt.Sprintf("app-%d", i%100), "1.0.0", metav1.ConditionTrue)))
	}
	for name, tc := range map[string]struct {
		page                  int
		first, last           int
		previous, next, query string
	}{
		"first":         {0, 1, 100, "", "/?page=2&text=c", "text=c"},
		"in the middle": {2, 101, 200, "/?page=1", "/?page=3", ""},
		"last":          {10, 901, 1000, "/?page=9", "", ""},
		"past the end":  {99, 901, 1000, "/?page=9", "", ""},
		"before all":    {-1, 1, 100, "", "/?page=2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(tc.query)
			require.NoError(t, err)
			g := newGrid(clusters, query, tc.page, nil)
			assert.Equal(t, []any{tc.first, tc.last, tc.previous, tc.next}, []any{g.First, g.Last, g.Previous, g.Next})
			assert.Len(t, g.Rows, clustersPerPage)
			assert.Len(t, g.Columns, maxColumns)
			assert.Equal(t, 60, g.MoreColumns)
		})
	}
	empty := newGrid(nil, url.Values{}, 3, nil)
	assert.Equal(t, []int{0, 0, 0}, []int{empty.First, empty.Last, empty.Total})
}

// K66, K69: what the hub knows is on pages, as text: none of it is markup.
func TestServer_showsWhatTheHubKnows(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web-" + ns}, Spec: v1alpha1.ApplicationDefinitionSpec{
		DisplayName: "<b>Web</b>", Description: `<script>alert("x")</script>`, DocumentationURL: "javascript:alert(1)", SourceURL: "https://example.com/web",
		Logo:     &v1alpha1.Logo{Format: "svg+xml", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)},
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: chartTemplate()}, {Version: "0.9.0", Deprecated: true, Template: chartTemplate()}},
	}}
	definition.Status.UsedBy = []v1alpha1.VersionUsage{{Version: "1.0.0", Count: 7, Installations: []string{"a/berlin/team/web"}}}
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "catalog"}, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/catalog.git"}}
	sync.Status.Conditions = ready(metav1.ConditionFalse, "1 of 2 objects has a problem")
	sync.Status.Problems = []v1alpha1.Problem{{
		ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "x", Name: "y"}, File: "apps/y.yaml", Line: 12, Reason: "Invalid", Message: "no <such> field",
	}}
	create(t, api, cluster(ns, "berlin", installed(definition.Name, "1.0.0", metav1.ConditionTrue)), definition, sync)
	b := open(t, api.RESTConfig(), ns)

	for name, tc := range map[string]struct {
		path   string
		has    []string
		hasNot []string
	}{
		"fleet":        {"/?text=" + ns, []string{"berlin", "1.0.0", "env=prod", "/objects/" + ns + "/berlin/applicationinstallations/team/" + definition.Name}, nil},
		"selector":     {"/?text=" + ns + "&selector=env%3Dtest", []string{"No clusters match."}, []string{"berlin"}},
		"all is well":  {"/?text=" + ns + "&state=failing", []string{"No clusters match."}, []string{"berlin"}},
		"bad selector": {"/?selector=%3D%3D", []string{"The label selector is not valid"}, nil},
		"catalog": {"/catalog", []string{
			"&lt;b&gt;Web&lt;/b&gt;", "&lt;script&gt;", "https://example.com/web", "7 installed", "1 deprecated", `src="/logos/` + definition.Name,
		}, []string{"<b>Web", "<script>alert", "javascript:"}},
		"definition": {objectLink("", "", "applicationdefinitions", "", definition.Name), []string{"a/berlin/team/web", "and 6 more", "deprecated"}, []string{"<script>alert"}},
		"deliveries": {"/gitsyncs", []string{"catalog", "1 of 2 objects has a problem"}, nil},
		"sync":       {objectLink("", "", "gitsyncs", ns, "catalog"), []string{"apps/y.yaml:12", "no &lt;such&gt; field", "waybill describe gitsync/catalog -n " + ns}, []string{"<such>"}},
		"cluster":    {objectLink("", "", "kubernetesclusters", ns, "berlin"), []string{"Installations (1)", definition.Name}, nil},
		"tree":       {objectLink("", "", "gitsyncs", ns, "catalog") + "/tree", []string{`role="treegrid"`, "catalog"}, nil},
		"search":     {"/search?q=BERL", []string{"berlin", "KubernetesCluster in " + ns}, nil},
		"markup":     {"/search?q=%3Cscript%3E", []string{"Nothing has that in its name", "&lt;script&gt;"}, []string{"<script>"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.get(tc.path)
			require.Equal(t, http.StatusOK, got.status, got.body)
			for _, text := range tc.has {
				assert.Contains(t, got.body, text)
			}
			for _, text := range tc.hasNot {
				assert.NotContains(t, strings.ReplaceAll(got.body, `<script type="module" src="/static/live.js"></script>`, ""), text)
			}
		})
	}
	logo := b.get("/logos/" + definition.Name)
	assert.Equal(t, "image/svg+xml", logo.header.Get("Content-Type"))
	assert.Contains(t, logo.header.Get("Content-Security-Policy"), "sandbox", "opened by itself, it runs no script")
	assert.Equal(t, http.StatusNotFound, b.get("/logos/none").status)
	large := definition.DeepCopy()
	large.ObjectMeta, large.Spec.Logo.Data = metav1.ObjectMeta{Name: "large-" + ns}, make([]byte, maxLogo+1)
	c, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme(t)})
	require.NoError(t, err)
	assert.ErrorContains(t, c.Create(t.Context(), large), "spec.logo.data", "the API takes none that is larger")
	require.NoError(t, b.server.inventory.definitions.informer.GetStore().Add(large)) // as one of an older CRD
	assert.Equal(t, http.StatusNotFound, b.get("/logos/"+large.Name).status)
	assert.Equal(t, http.StatusNotFound, b.get(objectLink("", "", "gitsyncs", ns, "none")).status)
	missing := b.get(objectLink("", "", "secrets", ns, "none"))
	assert.NotEqual(t, http.StatusOK, missing.status, "it shows Waybill's kinds only")
}

func chartTemplate() *v1alpha1.ApplicationTemplate {
	return &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{
		Helm: &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: "web", ChartVersion: "1.0.0"},
	}}
}

// The data of Secrets is not on any page, nor is what is in a cluster that does not answer.
func TestServer_saysWhichClusterDoesNotAnswer(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	k := cluster(ns, "gone", installed("web", "1.0.0", metav1.ConditionTrue))
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "none"}
	k.Status.LastSeen = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)}
	create(t, api, k)
	b := open(t, api.RESTConfig(), ns)
	got := b.get(objectLink(ns, "gone", "applicationinstallations", "team", "web"))
	assert.Equal(t, http.StatusBadGateway, got.status)
	assert.Contains(t, got.body, "none", "the Secret that is missing")
	assert.Contains(t, got.body, "2026-01-02 03:04:05")
	assert.Contains(t, b.get("/").body, "gone", "what the hub knows is there")
}

// A tenant sees what is in the namespace that they may read, and is told that it is not all.
func TestServer_showsOnlyWhatTheUserMayRead(t *testing.T) {
	api := hub(t)
	mine, other := api.Namespace(t), api.Namespace(t)
	create(t, api, cluster(mine, "berlin"), cluster(other, "paris"))
	b := open(t, reader(t, api, mine), mine)
	got := b.get("/").body
	assert.Contains(t, got, "berlin")
	assert.NotContains(t, got, "paris")
	assert.Contains(t, got, "those of namespace "+mine+" are shown")
	assert.Contains(t, b.get("/catalog").body, "You may not list and watch ApplicationDefinitions")
	assert.Equal(t, http.StatusForbidden, b.get(objectLink("", "", "kubernetesclusters", other, "paris")).status)
}
