package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// K38: a namespace that is there gets the labels that the installation says.
func TestDiff_labelsOfTheNamespace(t *testing.T) {
	s, cluster := newSources(t), user(t)
	c, apps, there := clientOf(t, cluster), cluster.Namespace(t), cluster.Namespace(t)
	inst := installation(apps, "web", "web", "1.0.0")
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: there, Labels: map[string]string{"team": "a"}}
	create(t, c, inst)
	args := []string{"diff", "installation/web", "-n", apps, "--system-namespace", apps, "--definition", s.path("catalog", "web.yaml")}

	got := waybill(t, cluster, args...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Namespace "+there+" in user: changed\n")
	assert.Contains(t, got.out, "+    team: a\n")

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}
	require.NoError(t, c.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`))))
	got = waybill(t, cluster, args...)
	assert.NotContains(t, got.out, "# Namespace ", "it has them")
}

// K38: the namespace is left out for a user who may not read it, and hides nothing of the rest.
func TestDiff_labelsOfANamespaceThatIsHidden(t *testing.T) {
	s, cluster := newSources(t), user(t)
	apps := cluster.Namespace(t)
	inst := installation(apps, "web", "web", "1.0.0")
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: apps, Labels: map[string]string{"team": "a"}}
	create(t, clientOf(t, cluster), inst)
	tenant, _ := userWith(t, cluster, apps, allButNamespaces...)

	for _, made := range []bool{false, true} {
		before := client.MergeFrom(inst.DeepCopy())
		inst.Spec.Namespace.Create = made
		require.NoError(t, clientOf(t, cluster).Patch(t.Context(), inst, before))
		got := waybillWith(t, "", "diff", "installation/web", "-n", apps, "--system-namespace", apps,
			"--definition", s.path("catalog", "web.yaml"), "--kubeconfig", tenant)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.out, "# Deployment.apps "+apps+"/web in user: created\n", "create: %t", made)
		assert.Contains(t, got.errOut, "warning: Namespace "+apps+" in user is left out: ", "create: %t", made)
		assert.Contains(t, got.errOut, "error: the comparison is not complete: 1 left out\n", "create: %t", made)
	}
}

// allButNamespaces are the rights that a tenant needs to see what an installation would change.
var allButNamespaces = []rbacv1.PolicyRule{
	right(v1alpha1.Group, []string{"applicationinstallations"}, "get"),
	right("", []string{"configmaps", "secrets", "services"}, "get", "list", "create", "patch"),
	right("apps", []string{"deployments"}, "get", "list", "create", "patch"),
}

// A cluster-scoped object has no namespace, whatever that of the command line is.
func TestDiff_fileOfAClusterScopedObject(t *testing.T) {
	cluster := user(t)
	name := cluster.Namespace(t)
	create(t, clientOf(t, cluster), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
	file := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + name + "}, rules: []}\n"

	got := waybillWith(t, file, "diff", "-f", "-", "--kubeconfig", cluster.KubeconfigFile())
	assert.Equal(t, 0, got.code, got.out)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 0 refused, 1 as they are\n")

	got = waybillWith(t, strings.ReplaceAll(file, name, name+"-new"), "diff", "-f", "-", "--kubeconfig", cluster.KubeconfigFile())
	assert.Contains(t, got.out, "# ClusterRole.rbac.authorization.k8s.io "+name+"-new in user: created\n")
	assert.NotContains(t, got.out, "namespace:")
}

// C59: what an API server has not answered to is nothing that it refuses.
func TestDiff_dryRunWithoutAnAnswer(t *testing.T) {
	cluster := user(t)
	namespace := cluster.Namespace(t)
	lost := inFrontOf(t, cluster, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("dryRun") {
			panic(http.ErrAbortHandler) // the connection ends
		}
		return true
	})

	got := waybillWith(t, configMapYAML(namespace, "one", "a"), "diff", "-f", "-", "--kubeconfig", lost)
	assert.Equal(t, 2, got.code, got.errOut)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errOut, "error: try out ConfigMap "+namespace+"/one: the API server of user does not answer: ")
}

// C25: a folder without manifests deletes nothing, and one with a broken manifest neither.
func TestDiff_ofKustomizationThatIsNotWhole(t *testing.T) {
	s, cluster := newSources(t), user(t)
	c, apps := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, apps, "the-hub")
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = apps
	inst := installation(apps, "site", "site", "1.0.0")
	installed(inst, v1alpha1.MethodKustomize)
	inst.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: apps + "_page__ConfigMap", Version: "v1"}}}
	delivered(t, cluster, apply.Owner{HubID: "the-hub", Kind: v1alpha1.ApplicationInstallationKind, Namespace: apps, Name: "site"}, configMapYAML(apps, "page", "a"))
	create(t, c, inst, secret)
	repo, err := s.git.CreateRepo(t.Context(), "site")
	require.NoError(t, err)
	definition := write(t, map[string]string{"definition.yaml": `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: site}
spec:
  method: kustomize
  versions: [{version: 1.0.0, template: {source: {git: {remote: "` + repo.URL() + `", credentials: {secretRef: {name: git-examples}}}}}}]
`})
	diff := func(files map[string]string) result {
		_, err := repo.CommitFS(t.Context(), "", os.DirFS(write(t, files)))
		require.NoError(t, err)
		return waybill(t, cluster, "diff", "installation/site", "-n", apps, "--system-namespace", apps, "--definition", definition)
	}

	got := diff(map[string]string{"README.md": "nothing"})
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.errOut, "its folder holds no manifest at ")

	got = diff(map[string]string{"new.yaml": configMapYAML(apps, "new", "a"), "broken.yaml": "apiVersion: v1\nkind: ConfigMap\n"})
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.out, "/new in user: created\n", "what is valid is applied")
	assert.Contains(t, got.errOut, "broken.yaml:1: ")
	assert.Contains(t, got.errOut, "what it may describe is not deleted while this is so\n")
	assert.Contains(t, got.errOut, "1 created, 0 changed, 0 deleted,")

	got = diff(map[string]string{"broken.yaml": "", "new.yaml": configMapYAML(apps, "new", "a")})
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "1 created, 0 changed, 1 deleted,", "it is whole now")
}

// P9: a folder whose manifests are all broken is not empty, and a broken manifest hides nothing.
func TestDiff_ofGitSyncWithNothingButProblems(t *testing.T) {
	cluster := hub(t)
	c, namespace := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, namespace, "this-hub")
	delivered(t, cluster, syncOf(t, c, namespace, "stays"), configMapYAML(namespace, "stays", "a"))
	folder := write(t, map[string]string{"broken.yaml": "apiVersion: v1\nkind: ConfigMap\n"})
	got := waybill(t, cluster, "diff", "gitsync/site", "-n", namespace, "--system-namespace", namespace, "--path", folder)
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.errOut, "what it may describe is not deleted while this is so\n0 created, 0 changed, 0 deleted, 0 refused, 1 as they are\n")
}

// K50: what is refused delivers nothing, and what cannot be resolved hides nothing of the others.
func TestDiff_filesOfWhichOneIsNotInstalled(t *testing.T) {
	s, cluster := newSources(t), user(t)
	apps := cluster.Namespace(t)
	files := map[string]string{}
	for name, change := range map[string]func(*v1alpha1.ApplicationInstallation){
		"good":  func(*v1alpha1.ApplicationInstallation) {},
		"early": func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "no-such-definition" },
		"refused": func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Pod", Name: "x"}}
		},
	} {
		inst := installation(apps, name, "web", "1.0.0")
		inst.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
		change(inst)
		content, err := yaml.Marshal(inst)
		require.NoError(t, err)
		files[name+".yaml"] = string(content)
	}
	got := waybill(t, cluster, "diff", "-f", write(t, files), "--definition", s.path("catalog", "web.yaml"))
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.out, "# Deployment.apps "+apps+"/good in user: created\n")
	assert.Contains(t, got.out, "# ApplicationInstallation.apps.waybill.dev "+apps+"/refused in user: refused: ")
	assert.NotContains(t, got.out, "# Deployment.apps "+apps+"/refused")
	assert.Contains(t, got.errOut, "warning: ApplicationInstallation/early in "+apps+": get ApplicationDefinition no-such-definition")
	assert.Contains(t, got.errOut, "error: the comparison is not complete: 1 left out\n")
}

// K47, C61: releases share the CRDs of their charts, which are left to others who brought them, and lose nothing.
func TestDiff_CRDsOfAChart(t *testing.T) {
	s, cluster := newSources(t), user(t)
	c, apps := clientOf(t, cluster), cluster.Namespace(t)
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = apps
	inst := installation(apps, "gadgets", "gadgets", "1.0.0")
	create(t, c, inst, secret)
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.diff.example.com, labels: {from: %s}}
spec:
  group: diff.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList%s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}]
`
	repo, err := s.git.CreateRepo(t.Context(), "gadgets")
	require.NoError(t, err)
	_, err = repo.CommitFS(t.Context(), "", os.DirFS(write(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: gadgets\nversion: 1.0.0\n", "crds/gadgets.yaml": fmt.Sprintf(crd, "chart", "", "new: {type: string}"),
	})))
	require.NoError(t, err)
	catalog := write(t, map[string]string{"definition.yaml": `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: gadgets}
spec:
  versions: [{version: 1.0.0, template: {source: {git: {remote: "` + repo.URL() + `", credentials: {secretRef: {name: git-examples}}}}}}]
`})
	live := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(fmt.Sprintf(crd, "kubectl", ", shortNames: [gd]", "old: {type: string}")), &live.Object))
	note, err := live.MarshalJSON()
	require.NoError(t, err)
	live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(note)})
	require.NoError(t, c.Create(t.Context(), live, client.FieldOwner("kubectl-client-side-apply")))
	t.Cleanup(func() { assert.NoError(t, clientOf(t, cluster).Delete(context.WithoutCancel(t.Context()), live)) })
	args := []string{"diff", "installation/gadgets", "-n", apps, "--system-namespace", apps, "--definition", catalog}
	const head = "# CustomResourceDefinition.apiextensions.k8s.io gadgets.diff.example.com in user: "

	set := func(o client.Object, patch string) result {
		require.NoError(t, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
		return waybill(t, cluster, args...)
	}
	got := waybill(t, cluster, args...)
	assert.NotContains(t, got.out, head, "it is there already")
	assert.Contains(t, got.errOut, " 0 refused, 1 as they are\n")

	refused := head + "refused: refuse to replace CustomResourceDefinition.apiextensions.k8s.io gadgets.diff.example.com: "
	got = set(inst, `{"spec":{"deployOptions":{"helm":{"crds":"CreateReplace"}}}}`)
	assert.Contains(t, got.out, refused+"it has no annotation apps.waybill.dev/owner; its field managers are kubectl-client-side-apply. ", got.errOut)
	got = set(live.DeepCopy(), `{"metadata":{"annotations":{"`+v1alpha1.OwnerAnnotation+`":"id/GitSync/team/site"}}}`)
	assert.Contains(t, got.out, refused+"it belongs to id/GitSync/team/site. ", got.errOut)
	got = set(live.DeepCopy(), `{"metadata":{"annotations":{"`+v1alpha1.AdoptAnnotation+`":"`+apps+`/gadgets"}}}`)
	assert.Contains(t, got.out, refused+"the chart removes .old of version v1. ", got.errOut)
}
