package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// K66-K69: an application is listed, installed, changed, looked at and removed by the custom resource
// alone, and each command says how it went.
func TestInstall_upgradeAndUninstall(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	assert.Equal(t, [][]string{
		{"VERSION", "DEFAULT", "DEPRECATED", "SOURCE", "USED", "BY"}, {"2.0.0", "web-2.0.0"}, {"1.1.0", "yes", "web-1.1.0"}, {"1.0.0", "yes", "web-1.0.0"},
	}, columns(s.succeeds("versions", name)))

	assert.Equal(t, strings.ReplaceAll(`ApplicationInstallation/web in NS created
  Installing TIME  release NS/web revision 1 of web-1.1.0
ApplicationInstallation/web in NS: ready: installed NAME 1.1.0: release NS/web revision 1 of web-1.1.0 (TIME)
`, "NAME", "web-NS"), withoutStarting(s.succeeds("install", "web", "--definition", name, "--set", "page.text=one,replicas=1")))
	assert.Contains(t, s.page("web"), "<p>one</p>")

	out := s.succeeds("upgrade", "web", "--version", "1.0.0", "--set", "replicas=3")
	assert.Contains(t, out, "ApplicationInstallation/web in NS changed\n")
	assert.Contains(t, out, "revision 2 of web-1.0.0")
	assert.JSONEq(t, `{"page": {"text": "one"}, "replicas": 3}`, string(s.installation("web").Spec.Values.Raw), "what is set stays")
	assert.Equal(t, "ApplicationInstallation/web in NS unchanged\n", strings.SplitAfter(s.succeeds("upgrade", "web", "--set", "replicas=3"), "\n")[0])
	assert.Contains(t, s.run("versions", name, "-o", "json").out, `"version": "1.0.0"`)

	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte("page: {text: two}\n"), 0o600))
	s.succeeds("upgrade", "web", "--reset-values", "-f", file)
	assert.JSONEq(t, `{"page": {"text": "two"}}`, string(s.installation("web").Spec.Values.Raw))
	assert.Contains(t, s.page("web"), "<p>two</p>")

	// K68: in progress, and a later query says how it went.
	assert.Equal(t, "ApplicationInstallation/web in NS changed\nApplicationInstallation/web in NS is in progress; to follow it: waybill get installation/web -n NS --watch\n",
		s.succeeds("upgrade", "web", "--version", "2.0.0", "--no-wait"))
	require.Eventually(t, func() bool { return len(s.installation("web").Status.History) == 4 }, limit, often)
	lines := columns(s.succeeds("history", "ai/web"))
	assert.Equal(t, []string{"REVISION", "VERSION", "SOURCE", "OUTCOME", "FINISHED", "MESSAGE"}, lines[0])
	assert.Equal(t, []string{"4", "2.0.0", "2.0.0", "Failed"}, lines[1][:4])
	assert.Equal(t, []string{"3", "1.0.0", "1.0.0", "Deployed"}, lines[2][:4])
	assert.Equal(t, []string{"1", "1.1.0", "1.1.0", "Deployed"}, lines[4][:4])

	out = s.succeeds("uninstall", "web")
	assert.Contains(t, out, "ApplicationInstallation/web in NS: uninstalled (TIME)\n")
	assert.Error(t, s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &v1alpha1.ApplicationInstallation{}))
}

// withoutStarting leaves out the phase that is over before it is seen, if it is.
func withoutStarting(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  Starting") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// A release can be left to another tool.
func TestInstall_orphans(t *testing.T) {
	s := newStore(t)
	s.succeeds("install", "web", "--definition", s.definition.Name)
	out := s.succeeds("uninstall", "web", "--orphan")
	assert.Contains(t, out, "ApplicationInstallation/web in NS: deleted; what it has installed stays (TIME)\n")
	assert.Error(t, s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &v1alpha1.ApplicationInstallation{}))
	assert.NotEmpty(t, s.page("web"), "the release is there")
}

// What a definition forbids to leave is uninstalled, and the command says so.
func TestUninstall_orphansThatAreForbidden(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	orphan := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))
	forbid := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"forbidOrphan":true}}`))
	s.succeeds("install", "web", "--definition", name)
	require.NoError(t, s.Patch(t.Context(), s.installation("web"), orphan))
	require.NoError(t, s.Patch(t.Context(), s.definition, forbid))

	why := "spec.deletionPolicy: ApplicationDefinition \"" + name + "\" forbids Orphan (spec.forbidOrphan): what is installed is uninstalled with the installation"
	s.refuses(2, []string{"uninstall", "web", "--orphan"}, why+": leave out --orphan to uninstall it")
	assert.Zero(t, s.installation("web").DeletionTimestamp, "what was to stay is not deleted")

	got := s.run("uninstall", "web")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.errOut, "warning: ApplicationInstallation/web in "+s.namespace+": "+why)
	assert.Contains(t, timeless(got.out), ": uninstalled (TIME)\n")
}

// Whether a definition forbids to leave what it has installed may be hidden, or gone with the definition.
func TestUninstall_orphansOfADefinitionThatIsGone(t *testing.T) {
	s := newStore(t)
	s.succeeds("install", "web", "--definition", s.definition.Name)
	require.NoError(t, s.Delete(t.Context(), s.definition))
	got := s.run("uninstall", "web", "--orphan")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.errOut, "it is not known whether ApplicationDefinition "+s.definition.Name+" forbids Orphan: ")
	assert.Contains(t, timeless(got.out), "deleted; what it has installed stays, unless its definition forbids that (TIME)\n")
	assert.NotEmpty(t, s.page("web"), "it did not")
}

// K67, K70: the commands write the custom resource, and nothing else: who may do only that in one namespace installs,
// changes, goes back and uninstalls.
func TestInstall_writesTheCustomResourceAlone(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	kubeconfig, _ := userWith(t, s.Cluster, s.namespace, right(v1alpha1.Group, []string{"applicationinstallations"}, "get", "list", "watch", "create", "update", "patch", "delete"))
	reads := right(v1alpha1.Group, []string{"applicationdefinitions"}, "get", "list")
	create(t, s.Client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Rules: []rbacv1.PolicyRule{reads}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: s.namespace}},
	})
	s.AwaitGranted(t, s.namespace, "", reads)
	for _, args := range [][]string{
		{"install", "web", "--definition", name, "--version", "1.0.0"}, {"upgrade", "web", "--version", "1.1.0", "--set", "replicas=1"},
		{"rollback", "installation/web", "--to-revision", "1", "--keep-values"}, {"uninstall", "web"},
	} {
		got := waybillWith(t, "", append(args, "-n", s.namespace, "--kubeconfig", kubeconfig)...)
		require.Equal(t, 0, got.code, "%v: %s%s", args, got.out, got.errOut)
	}
}

// K67: in a user cluster, by its kubeconfig in the hub. The messages say which one it is.
func TestInstall_inAUserCluster(t *testing.T) {
	s := newStore(t)
	engage(t, s.Client, s.namespace, "berlin", s.Kubeconfig())
	at := []string{"--cluster", s.namespace + "/berlin"}
	out := s.succeeds(append([]string{"install", "web", "--definition", s.definition.Name}, at...)...)
	assert.Contains(t, out, "ApplicationInstallation/web in NS of cluster berlin created\n")
	assert.Contains(t, out, "ApplicationInstallation/web in NS of cluster berlin: ready: ")
	out = s.succeeds(append([]string{"upgrade", "web", "--set", "replicas=1", "--no-wait"}, at...)...)
	assert.Contains(t, out, "to follow it: waybill get installation/web -n NS --cluster NS/berlin --watch\n")
	s.succeeds(append([]string{"uninstall", "web"}, at...)...)
}

// K67, K68: what cannot be installed says so, and goes on being tried without the command.
func TestInstall_thatFails(t *testing.T) {
	s := newStore(t)
	s.refuses(1, []string{"install", "web", "--definition", s.definition.Name, "--version", "2.0.0"},
		"ApplicationInstallation/web in "+s.namespace+": not ready: InstallFailed: ", "broken",
		"It goes on without this command; to follow it: waybill get installation/web -n "+s.namespace+" --watch\n")
	s.refuses(2, []string{"install", "web", "--definition", s.definition.Name},
		"ApplicationInstallation/web in "+s.namespace+" exists already: waybill upgrade web -n "+s.namespace+" changes it")
	s.refuses(2, []string{"rollback", "installation/web", "--to-revision", "1"}, "revision 1 of ApplicationInstallation/web in "+s.namespace+" failed: ")
}

// C25: nothing is written that was not meant.
func TestInstall_refuses(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	near := name[:len(name)-1]
	for reason, tc := range map[string]struct {
		args []string
		want []string
	}{
		"a definition that is none":   {[]string{"install", near}, []string{"cluster agent offers no ApplicationDefinition " + near, "did you mean", name}},
		"a version that is none":      {[]string{"install", name, "--version", "9.9.9"}, []string{"has no version 9.9.9: it offers 2.0.0, 1.1.0, 1.0.0 (deprecated)"}},
		"a namespace to create":       {[]string{"install", name, "--create-namespace"}, []string{"--create-namespace is for --target-namespace"}},
		"a value that is none":        {[]string{"install", name, "--set", "a"}, []string{"--set", "cannot be read"}},
		"a file that is not there":    {[]string{"install", name, "-f", "no-such-file"}, []string{"no-such-file"}},
		"both forms of a trial":       {[]string{"install", name, "--dry-run", "-o", "yaml"}, []string{"--dry-run and -o exclude each other"}},
		"nothing to upgrade":          {[]string{"upgrade", "web"}, []string{"nothing to change: give --version, -f, --set or --reset-values"}},
		"no installation to upgrade":  {[]string{"upgrade", "none", "--set", "a=b"}, []string{"ApplicationInstallation/none"}},
		"another kind to remove":      {[]string{"uninstall", "definition/" + name}, []string{"definition/" + name + " is of kind ApplicationDefinition: name an object of kind ApplicationInstallation"}},
		"another kind's versions":     {[]string{"versions", "installation/none"}, []string{"installation/none is of kind ApplicationInstallation"}},
		"no installation to remove":   {[]string{"uninstall", "none"}, []string{"ApplicationInstallation/none"}},
		"versions of none":            {[]string{"versions", near}, []string{"offers no ApplicationDefinition"}},
		"two names, as for helm":      {[]string{"install", "mine", name}, []string{"to install definition " + name + " as mine: waybill install mine --definition " + name}},
		"a number is no snapshot":     {[]string{"rollback", "none", "--to", "1"}, []string{"waybill rollback installation/none --to-revision 1"}},
		"both ways back":              {[]string{"rollback", "installation/web", "--to", "monday"}, []string{"--to is for the data of an application", "--to-revision"}},
		"a revision of data":          {[]string{"rollback", "application/web", "--to-revision", "1"}, []string{"--to-revision is for an ApplicationInstallation", "rollback installation/web --to-revision"}},
		"neither way back":            {[]string{"rollback", "web"}, []string{"choose one of --to SNAPSHOT", "installation/NAME with --to-revision"}},
		"a kind without any way back": {[]string{"rollback", "gitsync/web"}, []string{"gitsync/web cannot be rolled back"}},
	} {
		t.Run(reason, func(t *testing.T) {
			got := s.run(tc.args...)
			assert.Equal(t, 2, got.code, got.out)
			for _, want := range tc.want {
				assert.Contains(t, got.errOut, want)
			}
		})
	}
	list := &v1alpha1.ApplicationInstallationList{}
	require.NoError(t, s.List(t.Context(), list, client.InNamespace(s.namespace)))
	assert.Empty(t, list.Items)
	got := waybill(t, s.Cluster, "install", name, "-n", "no-such-namespace")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "there is no namespace no-such-namespace: create it first, or name another one with -n")
}

// K67: a trial shows what would change in the cluster, or what to commit, and writes nothing.
func TestInstall_writesNothing(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	got := s.run("install", "web", "--definition", name, "--dry-run", "--set", "page.text=one")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "# ApplicationInstallation.apps.waybill.dev "+s.namespace+"/web in agent: created")
	assert.Contains(t, got.out, "# ConfigMap "+s.namespace+"/web in agent: created")
	assert.Contains(t, got.out, "+    <p>one</p>")

	manifest := s.run("install", "web", "--definition", name, "-o", "yaml", "--target-namespace", "there", "--create-namespace", "--service-account", "deployer").out
	inst := &v1alpha1.ApplicationInstallation{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), inst))
	assert.Equal(t, v1alpha1.ApplicationInstallationSpec{
		ApplicationRef:     v1alpha1.ApplicationReference{Name: name, Version: "1.1.0"},
		Namespace:          &v1alpha1.TargetNamespace{Name: "there", Create: true},
		ServiceAccountName: "deployer",
	}, inst.Spec)
	assert.Equal(t, metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}, inst.ObjectMeta)
	list := &v1alpha1.ApplicationInstallationList{}
	require.NoError(t, s.List(t.Context(), list, client.InNamespace(s.namespace)))
	require.Empty(t, list.Items)

	s.succeeds("install", "web", "--definition", name)
	before := s.installation("web")
	got = s.run("upgrade", "web", "--version", "1.0.0", "--set", "page.text=two", "--dry-run")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "-    version: 1.1.0\n+    version: 1.0.0\n")
	assert.Contains(t, got.out, "+    <p>two</p>")
	assert.NotContains(t, s.run("upgrade", "web", "--set", "page.text=two", "-o", "yaml").out, "status")
	assert.Equal(t, before.Generation, s.installation("web").Generation)
}

// C25: what git owns is changed in git.
func TestInstall_ofWhatGitDelivers(t *testing.T) {
	s := newStore(t)
	site := gitSync(s.namespace, "site")
	site.Spec.URL, site.Spec.Path = "https://127.0.0.1:1/apps.git", "./installations"
	create(t, s.Client, site)
	inst := installation(s.namespace, "web", s.definition.Name, "1.1.0")
	inst.Annotations = map[string]string{v1alpha1.OwnerAnnotation: "hub/GitSync/" + s.namespace + "/site"}
	require.NoError(t, s.Create(t.Context(), inst))
	for _, args := range [][]string{{"upgrade", "web", "--set", "replicas=3"}, {"uninstall", "web"}} {
		s.refuses(2, args, "is delivered by GitSync "+s.namespace+"/site, which puts back what git says: "+
			"change its manifest below installations of https://127.0.0.1:1/apps.git instead, or change it until then with --force")
	}
	assert.Nil(t, s.installation("web").Spec.Values)
	manifest := s.succeeds("upgrade", "web", "--set", "replicas=3", "-o", "yaml")
	assert.Contains(t, manifest, "replicas: 3")
	assert.NotContains(t, manifest, "owner")

	got := s.run("upgrade", "web", "--set", "replicas=3", "--force")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.errOut, "warning: ApplicationInstallation/web in "+s.namespace+" is delivered by GitSync")
	got = s.run("uninstall", "web", "--force", "--no-wait")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "is being uninstalled; to follow it: waybill get installation/web")
}

// K67: a user who has seen enough leaves; the installation stays.
func TestInstall_isLeftAlone(t *testing.T) {
	s := newStore(t)
	stuck := installation(s.namespace, "stuck", s.definition.Name, "1.1.0")
	stuck.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "later"}}
	stuck.Finalizers = []string{"test.example/held"}
	require.NoError(t, s.Create(t.Context(), stuck))
	run := begin(t, s.KubeconfigFile(), "uninstall", "stuck", "-n", s.namespace)
	require.Eventually(t, func() bool { return !s.installation("stuck").DeletionTimestamp.IsZero() }, limit, often)
	assert.Equal(t, 2, run.stop())
	assert.Contains(t, run.errOut.String(), "interrupted: ApplicationInstallation/stuck in "+s.namespace+" stays and goes on; to follow it: waybill get installation/stuck -n "+s.namespace+" --watch")
	s.refuses(1, []string{"uninstall", "stuck", "--timeout", "1s"}, "not done in time: Uninstalling: its application is uninstalled, and it waits for test.example/held")
	stuck = s.installation("stuck")
	stuck.Finalizers = nil
	require.NoError(t, s.Update(t.Context(), stuck))
}

// K67: what a definition requires is installed with it, in order.
func TestInstall_withRequirements(t *testing.T) {
	s := newStore(t)
	base := s.definition
	portal := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "portal-" + s.namespace}, Spec: *base.Spec.DeepCopy()}
	portal.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: base.Name, Version: "< 1.1"}}
	create(t, s.Client, portal)
	got := s.run("install", "portal", "--definition", portal.Name, "-o", "yaml")
	assert.Contains(t, got.errOut, "requires "+base.Name+" < 1.1, which cluster agent has not: --with-requirements installs them as well")
	assert.Equal(t, 1, strings.Count(got.out, "kind: "))

	out := s.succeeds("install", "portal", "--definition", portal.Name, "--with-requirements", "--no-wait")
	assert.Less(t, strings.Index(out, "ApplicationInstallation/web-NS in NS created"), strings.Index(out, "ApplicationInstallation/portal in NS created"))
	assert.Equal(t, "1.0.0", s.installation(base.Name).Spec.ApplicationRef.Version)

	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(portal), portal))
	portal.Spec.Requires[0].Version = ">= 5"
	require.NoError(t, s.Update(t.Context(), portal))
	s.refuses(2, []string{"install", "other", "--definition", portal.Name, "--with-requirements"}, "requires "+base.Name+" >= 5: ApplicationDefinition "+base.Name+" offers 2.0.0, 1.1.0, 1.0.0")
	for _, name := range []string{"portal", base.Name} {
		s.succeeds("uninstall", name)
	}
}

// K66: names and versions are completed.
func TestInstall_completes(t *testing.T) {
	s := newStore(t)
	name := s.definition.Name
	inst := installation(s.namespace, "web", name, "1.1.0")
	require.NoError(t, s.Create(t.Context(), inst))
	for want, args := range map[string][]string{
		name + "\n":             {"install", ""},
		"1.1.0\n":               {"install", name, "--version", ""},
		"1.0.0\n":               {"install", "x", "--definition", name, "--version", ""},
		"2.0.0\n":               {"upgrade", "web", "--version", ""},
		"web\n":                 {"uninstall", ""},
		"installation/web\n":    {"rollback", "installation/"},
		"applicationdefinition": {"get", ""},
	} {
		got := waybillWith(t, "", append([]string{"__complete", "-n", s.namespace, "--kubeconfig", s.KubeconfigFile()}, args...)...)
		assert.Contains(t, got.out, want, "%v: %s", args, got.errOut)
	}
	s.succeeds("uninstall", "web")
}
