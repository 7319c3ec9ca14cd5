package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/tree"
	delivered "waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/test/env"
)

func labelled(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}}
}

var podTemplate = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
}

func podOf(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: labelled(set.Namespace, name), Spec: podTemplate.Spec}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID}}
	return pod
}

// running creates an installation of a Deployment with a Pod, and of a ConfigMap.
func running(t *testing.T, api *env.Cluster, namespace string) (client.Client, *appsv1.ReplicaSet, *corev1.Pod) {
	t.Helper()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	web := &appsv1.Deployment{ObjectMeta: labelled(namespace, "web"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: podTemplate}}
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	installation.Status.Inventory = &v1alpha1.Inventory{Entries: delivered.Encode([]manifest.ID{
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: namespace, Name: "web"}, {Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "web"},
	})}
	c := create(t, api, installation)
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))
	require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: labelled(namespace, "web")}))
	require.NoError(t, c.Create(t.Context(), web))
	set := &appsv1.ReplicaSet{ObjectMeta: labelled(namespace, "web-1"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Selector: selector, Template: podTemplate}}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: web.Name, UID: web.UID}}
	require.NoError(t, c.Create(t.Context(), set))
	pod := podOf(set, "web-1-a")
	require.NoError(t, c.Create(t.Context(), pod))
	return c, set, pod
}

// crash has a Pod crash.
func crash(t *testing.T, c client.Client, pod *corev1.Pod) {
	t.Helper()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}},
	}}
	require.NoError(t, c.Status().Update(t.Context(), pod))
}

// comes is the page of a tree that is open: it is fetched as long as its stream says so, until it is as a test wants it.
func (b *browser) comes(page string, events <-chan string, wanted func(text string) bool) {
	b.t.Helper()
	for {
		got := b.page(page)
		if got.status == http.StatusOK && wanted(got.text()) {
			return
		}
		for event := ""; event != "change"; {
			select {
			case event = <-events:
			case <-time.After(limit):
				b.t.Fatalf("its stream does not say that it has changed:\n%s", got.text())
			}
		}
	}
}

// K68: a tree shows what becomes of its objects, and which come and go, as they do; also in a user cluster.
func TestBranches_tellsWhatTheTreeShows(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	k := cluster(ns, "berlin") // it is the hub again
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "berlin", Key: "kubeconfig"}
	c, set, pod := running(t, api, ns)
	require.NoError(t, create(t, api, k).Create(t.Context(), kubeconfigOf(ns, "berlin", api.Kubeconfig())))
	b := open(t, api.RESTConfig(), ns)
	b.server.pace.gather = 10 * time.Millisecond
	page := objectLink(ns, "berlin", "applicationinstallations", ns, "web") + "/tree"
	events, end := b.stream(url.Values{"object": {page}})
	has := func(text string) func(string) bool {
		return func(page string) bool { return strings.Contains(page, text) }
	}
	b.comes(page, events, has(pod.Name))

	crash(t, c, pod)
	b.comes(page, events, has("Failed"))
	require.NoError(t, c.Create(t.Context(), podOf(set, "web-1-b")))
	b.comes(page, events, has("web-1-b"))
	next := set.DeepCopy()
	next.ObjectMeta = labelled(ns, "web-2")
	next.OwnerReferences = set.OwnerReferences
	require.NoError(t, c.Create(t.Context(), next))
	b.comes(page, events, has("web-2"))
	require.NoError(t, c.Create(t.Context(), podOf(next, "web-2-a")))
	b.comes(page, events, has("web-2-a"))
	require.NoError(t, c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: labelled(ns, "web")}))
	b.comes(page, events, has("NotFound"))

	end()
	require.Eventually(t, func() bool {
		b.server.trees.mu.Lock()
		defer b.server.trees.mu.Unlock()
		return len(b.server.trees.open) == 0
	}, limit, often, "its watches end with the page")
}

// Who may read Pods and not watch them sees changes of the rest, and is told so. What a user has watched is bounded.
func TestBranches_saysWhatIsNotWatched(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	running(t, api, ns)
	allow(t, api, ns, "branches-"+ns, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}, Verbs: []string{"get", "list"}}, mayRead)
	s := openShared(t, account(t, api))
	page := objectLink("", "", "applicationinstallations", ns, "web") + "/tree"
	said := func(b *browser) string {
		t.Helper()
		events, end := b.stream(url.Values{"object": {page}})
		defer end()
		require.Equal(t, http.StatusOK, b.page(page).status)
		for {
			select {
			case event := <-events:
				if text, ok := strings.CutPrefix(event, "partial"); ok && strings.Contains(text, "You may not watch ConfigMap") == strings.Contains(text, "Pod") {
					return text
				}
			case <-time.After(limit):
				t.Fatal("it says nothing")
			}
		}
	}
	jane := s.signIn("branches-" + ns)
	text := said(jane)
	assert.Contains(t, text, "You may not watch ConfigMap in namespace "+ns+" of hub, Pod in namespace "+ns+" of hub.")
	assert.NotContains(t, text, "Deployment")
	account := func() *spending { return s.server.budget.by["branches-"+ns] }
	watches := func() int {
		s.server.budget.mu.Lock()
		defer s.server.budget.mu.Unlock()
		return account().watches + s.server.budget.whole.watches
	}
	require.Eventually(t, func() bool { return watches() == 0 }, limit, often, "what was watched is given back")
	for range maxWatchesEach {
		require.NotNil(t, s.server.budget.watch("branches-"+ns))
	}
	assert.Contains(t, said(jane), "kinds and namespaces of the tree are more than the dashboard watches")
}

// follows is the page of a tree that is open, and is fetched as its stream says so, until it is to say what a test wants of what is not
// followed.
func (b *browser) follows(page string, events <-chan string, wanted func(said string) bool) {
	b.t.Helper()
	for event := "change"; ; {
		if event == "change" {
			require.Equal(b.t, http.StatusOK, b.page(page).status)
		}
		select {
		case event = <-events:
			if said, ok := strings.CutPrefix(event, "partialdata: "); ok && wanted(said) {
				return
			}
		case <-time.After(limit):
			b.t.Fatal("its stream does not have it say so")
		}
	}
}

func all(said string) bool { return said == `""` }

// touchOf changes an installation, so that its page is read again.
func touchOf(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	touched := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	require.NoError(t, c.Patch(t.Context(), touched, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"true"}}}`))))
}

// A kind that the cluster does not have is said not to be watched, and is when the tree is read after it has come.
func TestBranches_kindThatComesLater(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	group := ns + ".example.com"
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	installation.Status.Inventory = &v1alpha1.Inventory{Entries: delivered.Encode([]manifest.ID{{Group: group, Version: "v1", Kind: "Widget", Namespace: ns, Name: "one"}})}
	c := create(t, api, installation)
	b := open(t, api.RESTConfig(), ns)
	b.server.pace.gather = 10 * time.Millisecond
	page := objectLink("", "", "applicationinstallations", ns, "web") + "/tree"
	events, _ := b.stream(url.Values{"object": {page}})
	b.follows(page, events, func(said string) bool {
		return strings.Contains(said, "no such kind, or no answer, to watch Widget."+group)
	})

	widgets := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	require.NoError(t, c.Create(t.Context(), widgets))
	t.Cleanup(func() { _ = c.Delete(context.Background(), widgets) })
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": ns, "name": "one"}}}
	require.Eventually(t, func() bool { // when it is served
		late, err := client.New(api.RESTConfig(), client.Options{})
		return err == nil && late.Create(t.Context(), one.DeepCopy()) == nil
	}, limit, often)
	touchOf(t, c, ns)
	b.follows(page, events, all)
	late, err := client.New(api.RESTConfig(), client.Options{})
	require.NoError(t, err)
	require.NoError(t, late.Delete(t.Context(), one))
	b.comes(page, events, func(text string) bool { return strings.Contains(text, "NotFound") })
}

// Where a user may not watch, that is tried again after a while: they may have been given the right.
func TestBranches_rightThatComesLater(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	c, _, _ := running(t, api, ns)
	user := "later-" + ns
	reads := rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "configmaps", "deployments", "replicasets"}, Verbs: []string{"get", "list"}}
	allow(t, api, ns, user, reads, mayRead)
	s := openShared(t, account(t, api))
	s.server.trees.again = 0
	b := s.signIn(user)
	page := objectLink("", "", "applicationinstallations", ns, "web") + "/tree"
	events, _ := b.stream(url.Values{"object": {page}})
	b.follows(page, events, func(said string) bool {
		return strings.Contains(said, "You may not watch") && strings.Contains(said, "Pod")
	})

	reads.Verbs = append(reads.Verbs, "watch")
	require.NoError(t, c.Update(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user}, Rules: []rbacv1.PolicyRule{reads, mayRead}}))
	allow(t, api, ns, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}}) // it is known
	touchOf(t, c, ns)
	b.follows(page, events, all)
}

// A page whose tree is not read where its stream is, as another replica is asked for it, says that it is not followed.
func TestBranches_treeReadElsewhere(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	running(t, api, ns)
	b := open(t, api.RESTConfig(), ns)
	b.server.trees.within = time.Millisecond
	page := objectLink("", "", "applicationinstallations", ns, "web") + "/tree"
	events, _ := b.stream(url.Values{"object": {page}})
	for said := ""; !strings.Contains(said, "not followed yet"); {
		select {
		case said = <-events:
		case <-time.After(limit):
			t.Fatal("it does not say so")
		}
	}
	b.follows(page, events, all)
}

// Watches that have ended are tried again when the tree was read, those that were refused not at once.
func TestSiteWatch_due(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		watch siteWatch
		due   bool
	}{
		"Watched":      {siteWatch{}, false},
		"TriedAgain":   {siteWatch{outcome: absent}, false},
		"Absent":       {siteWatch{outcome: absent, ended: now}, true},
		"Rejected":     {siteWatch{outcome: rejected, ended: now}, true},
		"RefusedNow":   {siteWatch{outcome: refused, ended: now}, false},
		"RefusedLong":  {siteWatch{outcome: refused, ended: now.Add(-2 * refusedAgain)}, true},
		"RefusedAgain": {siteWatch{outcome: refused}, false},
	} {
		assert.Equal(t, tc.due, tc.watch.due(refusedAgain), name)
	}
}

// What an API server answers is told in its words: who has no valid credentials is not told to lack a right.
func TestBranches_saysWhyNot(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"": errors.New("connection refused"),
		"You may not watch Pod of hub. Changes there":                                 apierrors.NewForbidden(pods, "", nil),
		"The API server does not accept the credentials to watch Pod of hub. Changes": apierrors.NewUnauthorized("no"),
		"There is no such kind, or no answer, to watch Pod of hub. Changes":           apierrors.NewNotFound(pods, ""),
	} {
		b := newBranches(nil, nil)
		b.sketch = &tree.Sketch{}
		b.watches[tree.Site{}] = &siteWatch{what: "Pod of hub", outcome: outcomeOf(err)}
		assert.Equal(t, want == "", b.remark() == "")
		assert.Contains(t, b.remark(), want)
	}
}

// A tree that was read for a user is told to their streams, whether or not they are remembered as the same viewer, and to no others.
func TestTrees_areOfAUser(t *testing.T) {
	var all trees
	to := newBranches(&stream{woken: make(chan struct{}, 1), touched: map[touch]bool{}}, func() func() { return nil })
	all.follow(t.Context(), treePage{newViewer("jane", []string{"a", "b"}, nil), "/objects/x"}, to)
	for name, other := range map[string]treePage{
		"OtherUser":   {newViewer("john", []string{"a", "b"}, nil), "/objects/x"},
		"OtherGroups": {newViewer("jane", []string{"a"}, nil), "/objects/x"},
		"OtherObject": {newViewer("jane", []string{"a", "b"}, nil), "/objects/y"},
	} {
		all.shown(other, func() *tree.Sketch { return &tree.Sketch{} })
		assert.Nil(t, to.drawn(), name)
	}
	all.shown(treePage{newViewer("jane", []string{"a", "b"}, nil), "/objects/x"}, func() *tree.Sketch { return &tree.Sketch{} })
	assert.NotNil(t, to.drawn())
}
