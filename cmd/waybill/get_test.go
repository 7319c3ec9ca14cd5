package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

func gitSync(namespace, name string) *v1alpha1.GitSync {
	return &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}},
		Spec: v1alpha1.GitSyncSpec{
			URL: "https://git.example.com/platform/examples.git", Path: "catalog",
			Interval: metav1.Duration{Duration: time.Minute}, Timeout: metav1.Duration{Duration: time.Minute},
		},
	}
}

func definition(name string, versions ...string) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.DefaultVersion = versions[0]
	for _, version := range versions {
		helm := &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: name, ChartVersion: version}
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: helm}},
		})
	}
	return d
}

func installation(namespace, name, definition, version string) *v1alpha1.ApplicationInstallation {
	return &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: definition, Version: version},
		},
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

// columns returns the words of each line, so that a test does not depend on widths and ages.
func columns(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// K66, K68: the catalog, and how far installations are.
func TestGet_showsTheColumnsOfAKind(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	catalog := gitSync(namespace, "catalog")
	catalog.Status.Conditions = []metav1.Condition{condition("Ready", "False", v1alpha1.GitUnreachableReason, "no answer")}
	catalog.Status.Revision = "main@sha1:4f2a"
	web := definition("get-web", "1.0.0", "1.1.0")
	web.Status.Versions = "1.1.0, 1.0.0"
	create(t, c, catalog, web)

	got := waybill(t, cluster, "get", "gitsyncs", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"NAME", "READY", "REVISION", "OBJECTS", "PROBLEMS", "AGE", "STATUS"}, columns(got.out)[0])
	assert.Equal(t, []string{"catalog", "False", "main@sha1:4f2a"}, columns(got.out)[1][:3])
	assert.Equal(t, []string{"no", "answer"}, columns(got.out)[1][4:])

	got = waybill(t, cluster, "get", "definition", "get-web")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"get-web", "helm", "1.1.0,", "1.0.0", "1.0.0"}, columns(got.out)[1][:5], "all versions, not the first alone")
}

func TestGet_words(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	create(t, c, gitSync(namespace, "one"), gitSync(namespace, "two"), installation(namespace, "web", "web", "1.0.0"))

	cases := map[string]struct {
		args []string
		want []string
	}{
		"all kinds have their kind before the name": {[]string{"get"}, []string{"gitsync/one", "gitsync/two", "applicationinstallation/web"}},
		"several kinds":                  {[]string{"get", "syncs,installations"}, []string{"gitsync/one", "gitsync/two", "applicationinstallation/web"}},
		"a kind by its alias":            {[]string{"get", "sync"}, []string{"one", "two"}},
		"a kind with its group":          {[]string{"get", "gitsyncs.apps.waybill.dev"}, []string{"one", "two"}},
		"a kind in capitals":             {[]string{"get", "GitSync"}, []string{"one", "two"}},
		"kind and names":                 {[]string{"get", "gitsync", "two", "one"}, []string{"two", "one"}},
		"kind and name with a slash":     {[]string{"get", "gitsync/two"}, []string{"two"}},
		"objects of several kinds":       {[]string{"get", "gitsync/two", "installation/web"}, []string{"gitsync/two", "applicationinstallation/web"}},
		"a selector":                     {[]string{"get", "gitsyncs", "-l", "name=two"}, []string{"two"}},
		"names for other programs":       {[]string{"get", "gitsyncs", "-o", "name"}, []string{"gitsync.apps.waybill.dev/one", "gitsync.apps.waybill.dev/two"}},
		"a path into one object":         {[]string{"get", "gitsync", "one", "-o", "jsonpath={.spec.path}"}, []string{"catalog"}},
		"without the names of columns":   {[]string{"get", "gitsyncs", "--no-headers"}, []string{"one", "two"}},
		"one namespace, when it is said": {[]string{"get", "gitsyncs", "--all-clusters"}, []string{"hub", "hub"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append(tc.args, "-n", namespace)...)
			require.Equal(t, 0, got.code, got.errOut)
			var first []string
			for _, words := range columns(got.out) {
				if len(words) > 0 && words[0] != "NAME" && words[0] != "CLUSTER" {
					first = append(first, words[0])
				}
			}
			assert.Equal(t, tc.want, first, got.out)
		})
	}
}

func TestGet_refuses(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	cases := map[string]struct {
		args []string
		want string
	}{
		"a kind of others":          {[]string{"get", "deployments"}, `"deployments" is none of the kinds of Waybill here: gitsyncs, kubernetesclusters,`},
		"an object that is not":     {[]string{"get", "gitsync", "none"}, `get gitsync/none in namespace ` + namespace + `: gitsyncs.apps.waybill.dev "none" not found`},
		"a selector that is none":   {[]string{"get", "gitsyncs", "-l", "a==b=c"}, "read --selector: "},
		"a name and a selector":     {[]string{"get", "gitsync", "one", "-l", "a=b"}, "a name and --selector exclude each other"},
		"a name in all namespaces":  {[]string{"get", "gitsync", "one", "-A"}, "name the namespace with -n"},
		"a format that is none":     {[]string{"get", "gitsyncs", "-o", "xml"}, "xml"},
		"a mix of forms":            {[]string{"get", "gitsync/one", "two"}, `"two" is not KIND/NAME`},
		"a user cluster that isn't": {[]string{"get", "gitsyncs", "--cluster", "mars"}, "no KubernetesCluster mars in the hub"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append(tc.args, "-n", namespace)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
	got := waybill(t, cluster, "get", "gitsyncs", "-n", namespace)
	assert.Equal(t, 0, got.code)
	assert.Equal(t, "No resources found in namespace "+namespace+": -A looks in all\n", got.errOut)
}

func TestGet_saysWhatToDoWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	got := waybillWith(t, "", "get")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "error: load kubeconfig: $KUBECONFIG: stat /does/not/exist: no such file or directory\n", got.errOut)
}

func TestGet_clusterWithoutWaybill(t *testing.T) {
	cluster := env.Shared(t, env.Options{Name: "bare", NoControllers: true})
	got := waybill(t, cluster, "get")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "cluster bare offers no kinds of Waybill: install charts/waybill there")
}

// K69: installations of every user cluster, and a cluster that does not answer is a warning.
func TestGet_allClusters(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	h, u := clientOf(t, hubCluster), clientOf(t, userCluster)
	clusters, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	web := installation(apps, "web", "web", "1.0.0")
	web.Status.Application = &v1alpha1.ResolvedApplication{Name: "web", Version: "1.0.0", Method: "helm", Namespace: apps}
	web.Status.Conditions = []metav1.Condition{condition("Ready", "True", "Succeeded", "installed")}
	create(t, u, web)
	engage(t, h, clusters, "berlin", userCluster.Kubeconfig())
	engage(t, h, clusters, "dublin", deadKubeconfig(t, userCluster))

	got := waybill(t, hubCluster, "get", "installations", "--all-clusters")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"CLUSTER", "NAMESPACE", "NAME", "DEFINITION", "VERSION", "TARGET", "READY", "AGE", "STATUS"}, columns(got.out)[0])
	assert.Equal(t, []string{"berlin", apps, "web", "web", "1.0.0", apps, "True"}, columns(got.out)[1][:7])
	assert.Equal(t, "installed", columns(got.out)[1][8])
	assert.Contains(t, got.errOut, "warning: cluster dublin is missing: ")
	assert.NotContains(t, got.errOut, "token-that-nobody-may-see")

	got = waybill(t, hubCluster, "get", "installations", "--all-clusters", "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	var list struct {
		Clusters []struct {
			Name, Namespace, Error string
			Items                  []v1alpha1.ApplicationInstallation
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &list))
	require.Len(t, list.Clusters, 3, "the hub and both user clusters")
	assert.Equal(t, "berlin", list.Clusters[1].Name)
	assert.Equal(t, clusters, list.Clusters[1].Namespace)
	assert.Equal(t, "web", list.Clusters[1].Items[0].Name)
	assert.NotEmpty(t, list.Clusters[2].Error)

	assert.NotContains(t, got.out, "managedFields")
	got = waybill(t, hubCluster, "get", "installations", "--all-clusters", "-o", "json", "--show-managed-fields")
	assert.Contains(t, got.out, "managedFields", "as without other clusters")

	got = waybill(t, hubCluster, "get", "installations", "--all-clusters", "-o", "name")
	assert.Contains(t, got.out, "berlin applicationinstallation.apps.waybill.dev/web\n")

	got = waybill(t, hubCluster, "get", "installation", "web", "-n", apps, "--cluster", clusters+"/berlin")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "web", columns(got.out)[1][0])
}

// K69: objects by name, of which each cluster may have some.
func TestGet_namesInAllClusters(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	h, u := clientOf(t, hubCluster), clientOf(t, userCluster)
	clusters, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	engage(t, h, clusters, "berlin", userCluster.Kubeconfig())
	here, there, only := clusters+"-here", apps+"-there", apps+"-only"
	create(t, h, gitSync(clusters, here))
	create(t, u, gitSync(apps, there), installation(apps, only, "web", "1.0.0"))
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
		errOut string
	}{
		"one":         {"a name is looked for in all namespaces", []string{"installation", only}, []string{only}, ""},
		"several":     {"what the hub has not, another cluster may have", []string{"gitsync", there, here}, []string{here, there}, ""},
		"one of none": {"what no cluster has is an error, and no reason to hide the rest", []string{"gitsync", there, "none"}, []string{there}, `get gitsync/none in any namespace: gitsyncs.apps.waybill.dev "none" not found`},
		"none":        {"so is a name alone", []string{"gitsync", "none"}, nil, `get gitsync/none in any namespace: gitsyncs.apps.waybill.dev "none" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"", "name", "json"} {
				got := waybill(t, hubCluster, append([]string{"get", "--all-clusters", "-o", format}, tc.args...)...)
				for _, want := range tc.want {
					assert.Contains(t, got.out, want, tc.reason)
				}
				if tc.errOut == "" {
					assert.Equal(t, 0, got.code, got.errOut)
					continue
				}
				assert.Equal(t, 2, got.code, tc.reason)
				assert.Contains(t, got.errOut, tc.errOut, tc.reason)
			}
		})
	}
}

// deadKubeconfig is that of a server that refuses connections.
func deadKubeconfig(t *testing.T, like *env.Cluster) []byte {
	t.Helper()
	kubeconfig, err := clientcmd.Load(like.Kubeconfig())
	require.NoError(t, err)
	for _, cluster := range kubeconfig.Clusters {
		cluster.Server = "https://127.0.0.1:1"
	}
	for _, user := range kubeconfig.AuthInfos {
		user.Token = "token-that-nobody-may-see"
	}
	content, err := clientcmd.Write(*kubeconfig)
	require.NoError(t, err)
	return content
}

// A40: of all kinds, those that may be listed; a kind that is named must be.
func TestGet_withRightsToOneKind(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, application(namespace, "shop", "shop"))
	kubeconfig, role := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"applications"}, "get", "list"))
	get := []string{"get", "-n", namespace, "--kubeconfig", kubeconfig}

	got := waybillWith(t, "", get...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "application/shop")
	assert.Regexp(t, `^warning: kinds that you may not list in cluster \S+ are left out: applicationdefinitions, .*kubernetesclusters and \d+ other kinds\n$`, got.errOut)
	got = waybillWith(t, "", append(get, "-o", "name")...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "application.apps.waybill.dev/shop\n", got.out)

	got = waybillWith(t, "", append(get, "gitsyncs")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, `cannot list resource "gitsyncs"`)
	for _, format := range []string{"", "json", "name"} {
		got = waybillWith(t, "", append(get, "gitsyncs,applications", "-o", format)...)
		assert.Equal(t, 2, got.code, "not all that was named is shown")
		assert.Contains(t, got.out, "shop", "what may be listed is shown")
		assert.Regexp(t, `^error: gitsyncs.apps.waybill.dev is forbidden: .* cannot list resource "gitsyncs" .*\n$`, got.errOut)
	}
	got = waybillWith(t, "", append(get, "gitsync/one", "application/shop", "-o", "json")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.out, `"kind": "List"`, "two were named")
	assert.Contains(t, got.out, `"name": "shop"`)
	assert.Contains(t, got.errOut, "error: get gitsync/one in namespace "+namespace+": ")
	got = waybillWith(t, "", append(get, "gitsyncs,installations")...)
	assert.Equal(t, 2, got.code)
	assert.Empty(t, got.out)
	assert.Regexp(t, `cannot list resource "gitsyncs" .*\n.*cannot list resource "applicationinstallations"`, got.errOut)

	require.NoError(t, c.Delete(t.Context(), role))
	require.Eventually(t, func() bool {
		got = waybillWith(t, "", get...)
		return got.code == 2 && strings.Contains(got.errOut, "is forbidden")
	}, limit, often, "nothing may be listed")
}

// A40: programs learn which kinds of a cluster are missing.
func TestGet_allClustersWithRightsToOneKind(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	clusters, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	create(t, clientOf(t, userCluster), application(apps, "shop", "shop"))
	kubeconfig, _ := userWith(t, userCluster, apps, right(v1alpha1.Group, []string{"applications"}, "get", "list"))
	content, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	engage(t, clientOf(t, hubCluster), clusters, apps, content)

	for _, args := range [][]string{{}, {"applications,gitsyncs"}} {
		got := waybill(t, hubCluster, append([]string{"get", "--all-clusters", "-n", apps, "-o", "json"}, args...)...)
		require.Equal(t, 0, got.code, "as if the cluster did not answer: %s", got.errOut)
		type cluster struct {
			Name, Error string
			Items       []metav1.PartialObjectMetadata
			Forbidden   []string
		}
		var list struct{ Clusters []cluster }
		require.NoError(t, json.Unmarshal([]byte(got.out), &list))
		at := slices.IndexFunc(list.Clusters, func(c cluster) bool { return c.Name == apps })
		require.GreaterOrEqual(t, at, 0)
		found := list.Clusters[at]
		require.Len(t, found.Items, 1)
		assert.Equal(t, "shop", found.Items[0].Name)
		assert.Empty(t, found.Error)
		assert.Contains(t, found.Forbidden, "gitsyncs")
		assert.NotContains(t, found.Forbidden, "applications")
		assert.Contains(t, got.errOut, "warning: kinds that you may not list in cluster "+apps+" are left out: ")
	}
}
