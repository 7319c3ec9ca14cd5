package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// answerRequests plays the controller of one GitSync: what was asked for by the annotation
// is handled, with these conditions.
func answerRequests(t *testing.T, c client.Client, sync *v1alpha1.GitSync, conditions ...metav1.Condition) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, often, true, func(ctx context.Context) (bool, error) {
			live := &v1alpha1.GitSync{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(sync), live); err != nil {
				return false, err
			}
			at := live.Annotations[v1alpha1.ReconcileAtAnnotation]
			if at == "" || at == live.Status.LastHandledReconcileAt {
				return false, nil
			}
			live.Status.LastHandledReconcileAt, live.Status.ObservedGeneration = at, live.Generation
			live.Status.Conditions, live.Status.Revision = conditions, "main@sha1:4f2a"
			return true, c.Status().Update(ctx, live)
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestReconcile_waitsForTheOutcome(t *testing.T) {
	cases := map[string]struct {
		reason     string
		conditions []metav1.Condition
		code       int
		out        string
	}{
		"ready": {
			reason:     "a handled request with Ready=True is a success",
			conditions: []metav1.Condition{condition("Ready", "True", "Succeeded", "applied 3 objects")},
			code:       0, out: "ready: main@sha1:4f2a, applied 3 objects (",
		},
		"failed": {
			reason:     "a try that failed is reported, although it will be repeated",
			conditions: []metav1.Condition{condition("Ready", "False", "GitUnreachable", "no answer"), condition("Reconciling", "True", "ProgressingWithRetry", "no answer")},
			code:       1, out: "not ready: GitUnreachable: no answer\n",
		},
		"stalled": {
			reason:     "nothing will happen, so waiting is in vain",
			conditions: []metav1.Condition{condition("Ready", "False", "NotHealthy", "web"), condition("Stalled", "True", "NotHealthy", "web")},
			code:       1, out: "not ready: NotHealthy",
		},
		"suspended": {
			reason:     "nothing will happen before somebody resumes it",
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Suspended", "spec.suspend is set")},
			code:       1, out: "not ready: Suspended: spec.suspend is set",
		},
		"paused": {
			reason:     "nothing will be there before somebody resumes the cluster",
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Suspended", "1 of 2 clusters is paused, and not up to date: berlin")},
			code:       1, out: "not ready: Suspended: 1 of 2 clusters is paused, and not up to date: berlin",
		},
		"waiting": {
			reason:     "health is waited for until the time is over",
			conditions: []metav1.Condition{condition("Ready", "False", "NotHealthy", "web is InProgress")},
			code:       1, out: "not ready in time: NotHealthy: web is InProgress",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, c := hub(t), clientOf(t, hub(t))
			sync := gitSync(cluster.Namespace(t), "catalog")
			create(t, c, sync)
			answerRequests(t, c, sync, tc.conditions...)
			timeout := limit.String()
			if name == "waiting" {
				timeout = "15s"
			}
			got := waybill(t, cluster, "reconcile", "gitsync/catalog", "-n", sync.Namespace, "--timeout", timeout)
			assert.Equal(t, tc.code, got.code, tc.reason)
			assert.Contains(t, got.out+got.errOut, "GitSync/catalog in "+sync.Namespace+": "+tc.out)
			assert.NotContains(t, got.errOut, "\x1b", "no animation without a terminal")
		})
	}
}

func TestReconcile_saysThatNobodyListens(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	sync := gitSync(cluster.Namespace(t), "catalog")
	create(t, c, sync)
	got := waybill(t, cluster, "reconcile", "gitsync", "catalog", "-n", sync.Namespace, "--timeout", "10s")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.errOut, "not reconciled yet: check that waybill-sync runs")
}

// No controller reconciles an installation in a paused cluster, which is said at once, with the way out.
func TestReconcile_inAPausedCluster(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	paused := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berlin"}, Spec: v1alpha1.KubernetesClusterSpec{Paused: true}}
	web := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	create(t, c, paused, web)
	began := time.Now()
	got := waybill(t, cluster, "reconcile", "installation/web", "-n", namespace, "--cluster", namespace+"/berlin")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "ApplicationInstallation/web in "+namespace+": KubernetesCluster "+namespace+"/berlin is paused, so it is not reconciled until that is resumed: "+
		"waybill resume cluster/berlin -n "+namespace+"\n", got.errOut)
	assert.Less(t, time.Since(began), 5*time.Minute, "nothing is waited for")

	got = waybill(t, cluster, "reconcile", "installation/web", "-n", namespace, "--timeout", "3s")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.errOut, "that the KubernetesCluster is not paused in the hub", "where that is not known")
}

// One that is not done in time takes nothing from the others.
func TestReconcile_several(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	deaf, quick := gitSync(namespace, "deaf"), gitSync(namespace, "quick")
	create(t, c, deaf, quick)
	answerRequests(t, c, quick, condition("Ready", "True", "Succeeded", "applied 3 objects"))
	got := waybill(t, cluster, "reconcile", "gitsync", "deaf", "quick", "-n", namespace, "--timeout", "10s")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "GitSync/quick in "+namespace+": ready: ")
	assert.Contains(t, got.errOut, "GitSync/deaf in "+namespace+": not reconciled yet")
}

// A40: who may not watch an object learns in the end what it says.
func TestReconcile_withoutAWatch(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	kubeconfig, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"gitsyncs"}, "get", "patch"))
	quick := gitSync(namespace, "quick")
	create(t, c, quick)
	answerRequests(t, c, quick, condition("Ready", "True", "Succeeded", "applied 3 objects"))
	got := waybillWith(t, "", "reconcile", "gitsync/quick", "-n", namespace, "--timeout", "5s", "--kubeconfig", kubeconfig)
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "GitSync/quick in "+namespace+": ready: ")
}

func TestReconcile_onlyAsks(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	sync := gitSync(cluster.Namespace(t), "catalog")
	create(t, c, sync)
	got := waybill(t, cluster, "reconcile", "gitsync/catalog", "-n", sync.Namespace, "--wait=false")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "GitSync/catalog in "+sync.Namespace+": asked to reconcile\n", got.out)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(sync), sync))
	assert.NotEmpty(t, sync.Annotations[v1alpha1.ReconcileAtAnnotation])
}

func TestReconcile_refuses(t *testing.T) {
	cluster := hub(t)
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing":                 {nil, "requires at least 1 arg"},
		"a kind without a name":   {[]string{"gitsync"}, "which gitsync? name one: gitsync/NAME"},
		"an object that is not":   {[]string{"gitsync/none"}, "no GitSync is called none, in any namespace of cluster "},
		"a definition in a space": {[]string{"definition/none"}, `annotate ApplicationDefinition/none: `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"reconcile"}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
}

func TestSuspend_andResume(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	sync := gitSync(namespace, "catalog")
	berlin := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berlin"}}
	create(t, c, sync, berlin)

	got := waybill(t, cluster, "suspend", "gitsync/catalog", "cluster/berlin", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, strings.ReplaceAll("GitSync/catalog in NS suspended\nKubernetesCluster/berlin in NS suspended\n", "NS", namespace), got.out)
	assert.Empty(t, got.errOut)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(sync), sync))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(berlin), berlin))
	assert.True(t, sync.Spec.Suspend)
	assert.True(t, berlin.Spec.Paused)

	got = waybill(t, cluster, "suspend", "gitsync/catalog", "-n", namespace)
	assert.Equal(t, "GitSync/catalog in "+namespace+" is suspended already\n", got.out)

	got = waybill(t, cluster, "resume", "gitsync", "catalog", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(sync), sync))
	assert.False(t, sync.Spec.Suspend)

	got = waybill(t, cluster, "suspend", "installation/web", "-n", namespace)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "ApplicationInstallation/web in "+namespace+" cannot be suspended: a GitSync or a KubernetesCluster can")
}

// P7, C53: waybill-sync puts back what the manifest names, and nothing else.
func TestSuspend_whatIsDelivered(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	owner := apply.Owner{HubID: "id", Kind: v1alpha1.GitSyncKind, Namespace: "waybill-system", Name: "root"}
	manifest := "apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata: {namespace: " + namespace + ", name: NAME}\n" +
		"spec: {url: \"https://git.example.com/a.git\", SUSPEND}\n"
	cases := map[string]struct {
		reason, suspend string
		warned          bool
	}{
		"named":    {"git says that it is not suspended", "suspend: false", true},
		"left-out": {"git says nothing", "path: a", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			delivered(t, cluster, owner, strings.NewReplacer("NAME", name, "SUSPEND", tc.suspend).Replace(manifest))
			got := waybill(t, cluster, "suspend", "gitsync", name, "-n", namespace)
			require.Equal(t, 0, got.code, got.errOut)
			const warning = " is delivered by GitSync/waybill-system/root, which puts back what git says"
			assert.Equal(t, tc.warned, strings.Contains(got.errOut, name+warning), "%s: %s", tc.reason, got.errOut)
		})
	}
}
