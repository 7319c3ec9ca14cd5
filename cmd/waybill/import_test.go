package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

const oldApplications = "testdata/import/wordpress.yaml"

// C1: Applications of app.k8s.io/v1beta1 become ours, and each field that could not be
// carried over is reported, with the file and line.
func TestImport_printsManifests(t *testing.T) {
	got := waybillWith(t, "", "import", "-f", oldApplications)
	assert.Equal(t, 1, got.code, "one of them cannot be converted")

	documents := strings.Split(got.out, "---\n")
	require.Len(t, documents, 2, got.out)
	var wordpress, bare v1alpha1.Application
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), &wordpress))
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &bare))
	assert.Equal(t, metav1.ObjectMeta{
		Name: "wordpress", Namespace: "blog", Labels: map[string]string{"app.kubernetes.io/name": "wordpress"},
		Annotations: map[string]string{"example.com/team": "blue"},
	}, wordpress.ObjectMeta)
	assert.Equal(t, v1alpha1.ApplicationSpec{
		Type: "WordPress", Version: "6.8", Description: "WordPress is a content management system.",
		Components: []v1alpha1.ApplicationComponent{{Kind: "Service"}, {Kind: "Secret"}, {Group: "apps", Kind: "StatefulSet"}},
		Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app.kubernetes.io/name": "wordpress"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"web", "db"}}},
		},
		Ownership: v1alpha1.OwnershipOwn, AboutURL: "https://wordpress.org", LicenseURL: "https://example.com/gpl",
		DashboardURL: "https://example.com/wp-admin", Keywords: []string{"cms", "blog"},
		Maintainers: []string{"Jane Doe <jane@example.com> (https://example.com/jane)", "John Doe"},
	}, wordpress.Spec)
	assert.Equal(t, "bare", bare.Spec.Type, "required here, and not there")
	assert.Equal(t, v1alpha1.OwnershipObserve, bare.Spec.Ownership, "no addOwnerRef")
	assert.Equal(t, "https://example.com/bare", bare.Spec.AboutURL, "the first link, where none says what it is")
	assert.NotContains(t, got.out, "status")
	assert.NotContains(t, got.out, `name: ""`)

	for _, want := range []string{
		oldApplications + ":1: Application/wordpress in blog: spec.descriptor.icons: not carried over",
		`spec.descriptor.owners: not carried over, there is no such field: <ops@example.com>`,
		`spec.descriptor.notes: not carried over, there is no such field: "Log in as admin."`,
		`spec.descriptor.links: not carried over, url, license and dashboard are all there is: "Documentation" https://example.com/docs`,
		`spec.info: not carried over, there is no such field: "Admin password"`,
		`spec.assemblyPhase: not carried over`,
		`metadata.ownerReferences: not carried over`,
		`unknown field "spec.color": not carried over`,
		`spec.componentKinds: Service: group "v1" is taken as ""`,
		`spec.componentKinds: StatefulSet: is there twice`,
		`spec.descriptor.type: is empty; spec.type is required, and is the name "bare"`,
		`error: ` + oldApplications + `:66: Application/broken in blog: spec.selector: Required value`,
		`Application/wordpress in blog: spec.addOwnerRef: the old Application owns its components: delete it with --cascade=orphan`,
		`objects of other kinds are left out: 3`,
		oldApplications + `:80: StatefulSet/wordpress-webserver: annotation kubernetes.io/application names Application "wordpress-01", which is not among the files`,
	} {
		assert.Contains(t, got.errOut, want)
	}
	assert.NotContains(t, got.errOut, "hunter2", "a value may be a password")
	assert.NotContains(t, got.errOut, "wordpress-mysql", "its Application is among the files")
}

// C1: from a cluster, and into it.
func TestImport_fromTheCluster(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	require.NoError(t, cluster.InstallCRDs(t.Context(), "testdata/import/crd.yaml"))
	namespace := cluster.Namespace(t)
	content, err := os.ReadFile(oldApplications)
	require.NoError(t, err)
	for _, document := range strings.Split(string(content), "---\n")[:2] {
		old := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &old.Object))
		old.SetNamespace(namespace)
		old.SetOwnerReferences(nil) // else the garbage collector deletes it
		create(t, c, old)
	}

	for name, application := range map[string]string{"web": "wordpress-01", "db": "wordpress", "mail": "post", "none": ""} {
		create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": "wordpress", "tier": "web"},
			Annotations: map[string]string{v1alpha1.ApplicationAnnotation: application},
		}})
	}
	create(t, c, &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "post", Namespace: namespace}, Spec: v1alpha1.ApplicationSpec{
		Type: "mail", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "post"}},
		Components: []v1alpha1.ApplicationComponent{{Kind: "Service"}},
	}})

	got := waybill(t, cluster, "import", "-n", namespace, "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.errOut, "Secret/web in "+namespace+`: annotation kubernetes.io/application names Application "wordpress-01", which is not there`)
	assert.Equal(t, 1, strings.Count(got.errOut, "names Application"), "the others name one that is there or converted, or none")
	assert.Equal(t, 2, strings.Count(got.out, `"kind": "Application"`))

	got = waybill(t, cluster, "import", "wordpress", "-n", namespace, "--apply")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "Application/wordpress in "+namespace+" created\n", got.out)
	app := &v1alpha1.Application{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "wordpress"}, app))
	assert.Equal(t, "WordPress", app.Spec.Type)

	got = waybill(t, cluster, "import", "-n", namespace, "--apply")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "Application/bare in "+namespace+" created\nApplication/wordpress in "+namespace+" is there already\n", got.out)

	app.Spec.Version = "7.0"
	require.NoError(t, c.Update(t.Context(), app))
	got = waybill(t, cluster, "import", "wordpress", "-n", namespace, "--apply")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.errOut, "there is one with another spec, which is left as it is")
}

func TestImport_refuses(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	cases := map[string]struct {
		args []string
		want string
	}{
		"files and a name":            {[]string{"wordpress", "-f", oldApplications}, "-f excludes names and --all-namespaces"},
		"a name in all namespaces":    {[]string{"wordpress", "-A"}, "a name and --all-namespaces exclude each other"},
		"a format that nobody prints": {[]string{"-f", oldApplications, "--apply", "-o", "yaml"}, "--apply creates the Applications, and prints no manifests"},
		"a file without any":          {[]string{"-f", "testdata/import/crd.yaml"}, "the files hold no Application of app.k8s.io/v1beta1"},
		"a cluster without the kind":  {[]string{"-n", namespace}, "offers no Applications of app.k8s.io/v1beta1: -f reads them from a file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"import"}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
}
