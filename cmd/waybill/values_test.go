package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K39, K48, C26: what was set, what that comes to, and where each value is from. Secrets are not shown.
func TestValues_explain(t *testing.T) {
	s := newStore(t)
	create(t, s.Client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "more", Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}},
		StringData: map[string]string{"values.yaml": "page: {text: hunter2}\nreplicas: 5\n"},
	})
	inst := installation(s.namespace, "web", s.definition.Name, "1.1.0")
	inst.Spec.ValuesBlock = "# few\nreplicas: 1\nresources: {requests: {cpu: null}}\n"
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: "more"}}
	require.NoError(t, s.Create(t.Context(), inst))

	got := s.run("values", "web", "--system-namespace", s.namespace)
	assert.Equal(t, "# few\nreplicas: 1\nresources: {requests: {cpu: null}}\n", got.out)
	assert.Equal(t, "# further values: Secret/more, key values.yaml\n", got.errOut)

	got = s.run("values", "web", "--explain")
	require.Equal(t, 0, got.code, got.errOut)
	from := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n")[1:] {
		name, rest, _ := strings.Cut(line, " ")
		from[name] = strings.Join(strings.Fields(rest), " ")
	}
	assert.Equal(t, "of the definition ApplicationDefinition "+s.definition.Name+", defaultValues", from["page.title"])
	assert.Equal(t, "*** Secret more", from["page.text"])
	assert.Equal(t, "1 spec.valuesBlock", from["replicas"], "what is set lies over the Secret")
	assert.Equal(t, "80 chart web 1.1.0", from["service.port"])
	assert.Equal(t, `"" chart web 1.1.0`, from["image.tag"])
	assert.Equal(t, "null spec.valuesBlock", from["resources.requests.cpu"])
	assert.NotContains(t, got.out, "hunter2")

	got = s.run("values", "web", "--all")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "  text: '***'\n  title: of the definition\n")
	assert.Contains(t, got.out, "  requests:\n    memory: 16Mi\n", "what is null is gone")
	assert.NotContains(t, got.out, "hunter2")
	got = s.run("values", "web", "--explain", "-o", "json")
	assert.Contains(t, got.out, `"from": "Secret more"`)
	assert.NotContains(t, got.out, "hunter2")
	s.succeeds("uninstall", "web")
}

// K46, K50: a revision is gone back to with the values that it had, or not at all.
func TestRollback_toARevision(t *testing.T) {
	s := newStore(t)
	s.succeeds("install", "web", "--definition", s.definition.Name, "--version", "1.0.0", "--set", "page.text=one")
	s.succeeds("upgrade", "web", "--version", "1.1.0")
	s.succeeds("upgrade", "web", "--set", "page.text=two,replicas=3")
	s.refuses(2, []string{"rollback", "installation/web"}, "has several revisions: choose one with --to-revision: 3 (1.1.0), 2 (1.1.0), 1 (1.0.0)")
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "7"}, "has no revision 7: choose one with --to-revision: 3 (1.1.0)")
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "3"}, "with these values already")

	assert.Contains(t, s.succeeds("rollback", "installation/web", "--to-revision", "1", "--dry-run"), "-    version: 1.1.0\n+    version: 1.0.0\n")
	s.succeeds("rollback", "installation/web", "--to-revision", "1")
	inst := s.installation("web")
	assert.Equal(t, "1.0.0", inst.Spec.ApplicationRef.Version)
	assert.JSONEq(t, `{"page": {"text": "one"}}`, string(inst.Spec.Values.Raw), "what the definition sets is not frozen")
	assert.Contains(t, s.page("web"), "<p>one</p>")
	assert.Equal(t, inst.Status.History[0].ValuesDigest, inst.Status.History[3].ValuesDigest)

	// By its version alone, if that is asked for.
	s.succeeds("upgrade", "web", "--version", "1.1.0", "--set", "page.text=three")
	s.succeeds("rollback", "installation/web", "--to-revision", "1", "--keep-values")
	assert.Contains(t, s.page("web"), "<p>three</p>")

	// Not every user may read the records.
	weak, _ := userWith(t, s.Cluster, s.namespace, right(v1alpha1.Group, []string{"applicationinstallations"}, "get", "list", "watch", "patch"))
	got := waybillWith(t, "", "rollback", "installation/web", "-n", s.namespace, "--kubeconfig", weak, "--to-revision", "3")
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.errOut, "those cannot be set again: get Secret "+s.namespace+"/sh.helm.release.v1.web.v3, Helm's record: ")
	assert.Contains(t, got.errOut, "forbidden")
	got = waybillWith(t, "", "rollback", "installation/web", "-n", s.namespace, "--kubeconfig", weak, "--to-revision", "2", "--keep-values")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, s.page("web"), "<p>three</p>")
	s.succeeds("upgrade", "web", "--version", "1.0.0")

	// Another user has altered the record.
	record := &corev1.Secret{}
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sh.helm.release.v1.web.v4"}, record))
	record.Data["release"] = []byte("x")
	require.NoError(t, s.Update(t.Context(), record))
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "4"}, "has other values than at revision 4, and those cannot be set again",
		"differs from what Waybill recorded", "--keep-values goes back to version 1.0.0 and leaves the values as they are")
	assert.Contains(t, s.page("web"), "<p>three</p>")
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "3"}, "v3, Helm's record: ", "not found")
	s.succeeds("uninstall", "web")
}

// C26: what came from a Secret is not written where more people can read it.
func TestRollback_withValuesOfASecret(t *testing.T) {
	s := newStore(t)
	create(t, s.Client, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "more", Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}},
		StringData: map[string]string{"values.yaml": "page: {text: hunter2}\n"},
	})
	inst := installation(s.namespace, "web", s.definition.Name, "1.0.0")
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: "more"}}
	require.NoError(t, s.Create(t.Context(), inst))
	require.Eventually(t, func() bool { return len(s.installation("web").Status.History) == 1 }, limit, often)
	inst = s.installation("web")
	inst.Spec.ValuesFrom = nil
	require.NoError(t, s.Update(t.Context(), inst))
	s.succeeds("upgrade", "web", "--version", "1.1.0")
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "1"}, "some came from a Secret, and would be readable in spec.values")
	assert.Nil(t, s.installation("web").Spec.Values)
	s.succeeds("uninstall", "web")
}
