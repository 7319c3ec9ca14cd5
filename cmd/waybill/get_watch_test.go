package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// sayReady sets what a GitSync says of itself.
func sayReady(t *testing.T, c client.Client, sync *v1alpha1.GitSync, status metav1.ConditionStatus, message string) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(sync), sync))
	sync.Status.Conditions = []metav1.Condition{condition("Ready", status, "Succeeded", message)}
	require.NoError(t, c.Status().Update(t.Context(), sync))
}

// What there is, and each row that changes, as kubectl does.
func TestGet_watch(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	one, two := gitSync(namespace, "one"), gitSync(namespace, "two")
	create(t, c, one, two)
	all := begin(t, cluster.KubeconfigFile(), "get", "gs", "-n", namespace, "-w", "--output-watch-events")
	single := begin(t, cluster.KubeconfigFile(), "get", "gitsync/one", "-n", namespace, "--watch", "--no-headers", "-o", "wide")
	objects := begin(t, cluster.KubeconfigFile(), "get", "gitsync", "one", "-n", namespace, "--watch", "-o", "name")
	all.prints(t, "two")
	single.prints(t, "one")
	objects.prints(t, "one\n")
	sayReady(t, c, one, "True", "applied 3 objects")
	all.prints(t, "applied 3 objects")
	single.prints(t, "applied 3 objects")
	objects.prints(t, "gitsync.apps.waybill.dev/one\ngitsync.apps.waybill.dev/one\n")
	require.NoError(t, c.Delete(t.Context(), two))
	all.prints(t, "DELETED")
	for _, run := range []*running{all, single, objects} {
		assert.Equal(t, 0, run.stop(), &run.errOut)
		assert.Empty(t, run.errOut.String())
	}
	rows := columns(all.out.String())
	assert.Equal(t, []string{"EVENT", "NAME", "READY", "REVISION", "OBJECTS", "PROBLEMS", "AGE", "STATUS"}, rows[0])
	var events []string
	for _, row := range rows[1:] {
		events = append(events, row[0]+" "+row[1])
	}
	assert.Equal(t, []string{"ADDED one", "ADDED two", "MODIFIED one", "DELETED two"}, events)
	assert.NotContains(t, single.out.String(), "two")
	assert.Equal(t, 2, strings.Count(single.out.String(), "\n"), single.out.String())
}

// The changes of all clusters are one table.
func TestGet_watchAllClusters(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	h, u := clientOf(t, hubCluster), clientOf(t, userCluster)
	system, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	engage(t, h, system, "berlin", userCluster.Kubeconfig())
	engage(t, h, system, "dublin", deadKubeconfig(t, userCluster))
	web := installation(apps, "web", system, "1.0.0")
	create(t, u, web)
	run := begin(t, hubCluster.KubeconfigFile(), "get", "installation", "web", "-n", apps, "--all-clusters", "-w")
	run.prints(t, "web")
	require.Eventually(t, func() bool { return strings.Contains(run.errOut.String(), "cluster dublin is missing") }, limit, often)
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	web.Status.Conditions = []metav1.Condition{condition("Ready", "True", "Succeeded", "installed web 1.0.0")}
	require.NoError(t, u.Status().Update(t.Context(), web))
	run.prints(t, "installed web 1.0.0")
	assert.Equal(t, 0, run.stop())
	rows := columns(run.out.String())
	assert.Equal(t, []string{"CLUSTER", "NAMESPACE", "NAME"}, rows[0][:3])
	assert.Equal(t, []string{"berlin", apps, "web"}, rows[2][:3])
}

// An API server that no longer knows the version to go on from is asked again, and only what has
// changed is printed.
func TestGet_watchAfterACompaction(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	one := gitSync(namespace, "one")
	create(t, c, one)
	var refused atomic.Bool
	kubeconfig := inFrontOf(t, cluster, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || !refused.CompareAndSwap(false, true) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		status, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old"})
		fmt.Fprintf(w, `{"type":"ERROR","object":%s}`, status)
		return false
	})
	run := begin(t, kubeconfig, "get", "gitsyncs", "-n", namespace, "-w", "--no-headers")
	run.prints(t, "one")
	require.Eventually(t, refused.Load, limit, often)
	sayReady(t, c, one, "True", "applied 3 objects")
	run.prints(t, "applied 3 objects")
	assert.Equal(t, 0, run.stop(), &run.errOut)
	assert.Equal(t, 2, strings.Count(run.out.String(), "\n"), run.out.String())
}

func TestGet_watchRefuses(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"every kind":                   {[]string{"-w"}, "--watch shows one kind or one object: name it"},
		"several kinds":                {[]string{"gs,kc", "-w"}, "--watch shows one kind or one object: name it"},
		"objects of all clusters":      {[]string{"gs", "-w", "--all-clusters", "-o", "json"}, "--watch and --all-clusters print tables"},
		"a column where there is none": {[]string{"gs", "-w", "--output-watch-events", "-o", "yaml"}, "--output-watch-events adds a column to tables"},
		"a column without a watch":     {[]string{"gs", "--output-watch-events"}, "--output-watch-events is for --watch"},
		"an object that is not":        {[]string{"gs", "none", "-w"}, "get gitsync/none in namespace " + namespace + `: gitsyncs.apps.waybill.dev "none" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"get", "-n", namespace}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
}
