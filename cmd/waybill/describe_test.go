package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// sections returns what stands below each title of a description.
func sections(text string) map[string]string {
	found, title := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if name, rest, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			title = name
			found[title] = strings.TrimSpace(rest)
			continue
		}
		found[title] += line
	}
	return found
}

// Everything about an object at one place: what it wants, says, made and reported.
func TestDescribe(t *testing.T) {
	f := newFleetExample(t)
	u := clientOf(t, f.user)
	create(t, u, happened(about(ours, "ApplicationInstallation", f.apps, "web"), "UpgradeFailed", "timed\x1b[2J out", 80),
		happened(about("apps/v1", "Deployment", f.apps, "web"), "Below", "an event of what it made", 70))
	got := waybill(t, f.hub, "describe", "installation/web", "-n", f.apps, "--cluster", f.clusters+"/berlin")
	require.Equal(t, 0, got.code, got.errOut)
	s := sections(got.out)
	assert.Equal(t, "web", s["Name"])
	assert.Equal(t, f.apps, s["Namespace"])
	assert.Equal(t, "berlin", s["Cluster"])
	assert.Equal(t, "ApplicationInstallation (apps.waybill.dev/v1alpha1)", s["Kind"])
	assert.Equal(t, "<none>", s["Labels"])
	assert.Regexp(t, `^\d{4}-.*Z \(\S+ ago\)$`, s["Created"])
	assert.Contains(t, s["Spec"], "  applicationRef:\n    name: "+f.clusters+"\n    version: 1.0.0\n")
	assert.Regexp(t, `  TYPE +STATUS +REASON +SINCE +MESSAGE\n  Ready +True +Succeeded +\S+ +installed web-1\.0\.0\n`, s["Conditions"])
	assert.Regexp(t, `(?m)^  ├─ Deployment/web +`+f.apps+` +Current`, s["Tree"])
	assert.Regexp(t, `80m +Warning +UpgradeFailed +ApplicationInstallation/web +a-test +timed\^\[\[2J out`, s["Events"])
	assert.NotContains(t, got.out, "Below", "of the object itself")

	got = waybill(t, f.hub, "describe", "ad", f.clusters, "--show-events=false")
	require.Equal(t, 0, got.code, got.errOut)
	s = sections(got.out)
	assert.Equal(t, "<none>", s["Conditions"])
	assert.NotContains(t, s, "Namespace", "it has none")
	assert.NotContains(t, s, "Events")
}

// The data of Secrets is not shown, that of templates of Secrets neither, and a long spec is cut.
func TestDescribe_hidesSecrets(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata:
  name: secretive
  annotations: {note: "steer\e[2J", kubectl.kubernetes.io/last-applied-configuration: hunter2}
spec:
  clusterSelector: {}
  resourceTemplates:
  - metadata: {name: password}
    spec:
      template: {apiVersion: v1, kind: Secret, metadata: {name: password, namespace: a}, stringData: {password: hunter2}}
`), app))
	app.Namespace = cluster.Namespace(t)
	create(t, c, app)
	got := waybill(t, cluster, "describe", "ka/secretive", "-n", app.Namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.NotContains(t, got.out, "hunter2")
	assert.Contains(t, got.out, "***")
	assert.Contains(t, got.out, "steer^[[2J")

	long := installation(app.Namespace, "long", "web", "1.0.0")
	long.Spec.ValuesBlock = "list:\n" + strings.Repeat("- entry\n", 300)
	create(t, c, long)
	got = waybill(t, cluster, "describe", "ai/long", "-n", app.Namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, " more lines: waybill get applicationinstallation/long -o yaml\n")
	assert.Equal(t, 101, strings.Count(sections(got.out)["Spec"], "\n"))
}
