//go:build linux

package data

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	_ "embed"

	"waybill.dev/waybill/api/v1alpha1"
	snapshots "waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/node"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

func TestMain(m *testing.M) { hub.Main(m) }

//go:embed shop.yaml
var shop string

// world is a cluster with a real Node, and a shop whose database is written to all the time.
type world struct {
	*hub.World

	volumes *volumes.Volumes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	node.Require(t)
	c, err := env.StartCluster(t.Context(), env.Options{Name: "data", Own: true, CRDs: []string{"../../../charts/waybill/crds", volumes.CRDs(t)}})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	bin, err := env.NodeBinaries(t.Context())
	require.NoError(t, err)
	image, err := node.Postgres.Build(t.Context(), bin)
	require.NoError(t, err)
	n, err := node.Start(t.Context(), c, node.Options{Images: []string{image}})
	require.NoError(t, err)
	v, err := volumes.StartOn(t.Context(), c, n)
	require.NoError(t, err)
	w := &world{World: hub.NewWorld(t, c), volumes: v}
	programs, err := program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hub.SystemNamespace}})
	process, err := program.Start(t.Context(), program.Options{
		Name: program.Sync, Bin: programs, Kubeconfig: c.KubeconfigFile(), Args: []string{"--controllers=agent,data", "--leader-elect=false"},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := process.Log()
			t.Log(program.Tail(log, 60))
			state, _ := c.Kubectl(t.Context(), "", "get", "waybill,pods,pvc,pv,volumesnapshots,volumesnapshotcontents,events", "-A")
			t.Log(state)
		}
		assert.NoError(t, process.Kill())
	})
	return w
}

// psql runs a statement in the database of a Pod and returns what it prints.
func (w *world) psql(namespace, pod, statement string) string {
	w.T.Helper()
	return w.exec(namespace, pod, fmt.Sprintf("psql -qAtc %q", statement))
}

func (w *world) exec(namespace, pod, script string) string {
	w.T.Helper()
	result, err := w.volumes.Exec(w.T.Context(), namespace, pod, script)
	require.NoError(w.T, err)
	require.Zero(w.T, result.Code, "%s: %s", script, result.Stderr)
	return strings.TrimSpace(result.Stdout)
}

func (w *world) orders(namespace, pod string) int {
	w.T.Helper()
	n, err := strconv.Atoi(w.psql(namespace, pod, "select count(*) from orders"))
	require.NoError(w.T, err)
	return n
}

func (w *world) awaitPod(namespace, name string) {
	w.T.Helper()
	pod := &corev1.Pod{}
	require.True(w.T, w.Eventually(func() bool {
		return w.ExistsIn(namespace, pod, name) && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	}), "Pod %s is not ready: %v", name, pod.Status)
}

// A snapshot under load holds everything that was committed before the hook returned: a clone of it
// starts, is consistent, and has those rows; a rollback brings them back in place; and an undo brings
// back what was there before the rollback.
// S2, S78, S79, S87, S100, S101, C63, C64
func TestPostgreSQL(t *testing.T) {
	w := newWorld(t)
	_, err := w.Cluster.Kubectl(t.Context(), shop, "-n", w.Namespace, "apply", "-f", "-")
	require.NoError(t, err)
	w.awaitPod(w.Namespace, "shop-0")
	w.psql(w.Namespace, "shop-0", "create table orders (id bigserial primary key, item text)")
	w.exec(w.Namespace, "shop-0", "pgbench -qi -s 10 >/dev/null 2>&1")
	w.exec(w.Namespace, "shop-0", `echo "insert into orders (item) values (md5(random()::text));" > /tmp/buy.sql
		(pgbench -n -c 4 -T 600 -f /tmp/buy.sql; true) > /tmp/pgbench.log 2>&1 &`)
	require.True(t, w.Eventually(func() bool { return w.orders(w.Namespace, "shop-0") > 100 }))

	snapshot := w.snapshot("first")
	assert.Equal(t, v1alpha1.ConsistencyApplication, snapshot.Status.Consistency)
	content := &v1alpha1.ApplicationSnapshotContent{}
	require.True(t, w.Exists(content, snapshot.Status.BoundSnapshotContentName))
	committed, err := strconv.Atoi(content.Spec.Tags["orders"])
	require.NoError(t, err, "%v", content.Spec.Tags)
	require.Greater(t, committed, 100)

	w.clone(snapshot, committed)
	w.exec(w.Namespace, "shop-0", "head -c 1G /dev/urandom > /data/filler")
	w.rollBack(w.snapshot("large"), committed)
}

// snapshot takes a snapshot of the shop, and logs for how long that was quiesced.
func (w *world) snapshot(name string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	snapshot := &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: "postgres",
			Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "shop"},
		},
	}
	w.Create(snapshot)
	hub.AwaitReady(w.World, snapshot)
	w.T.Logf("snapshot %s: quiesced for %s, of which the driver copied for %s; %s in all", name, snapshot.Status.QuiescedFor.Duration,
		w.copied(snapshot).Round(time.Millisecond), snapshot.Status.CompletionTime.Sub(snapshot.CreationTimestamp.Time))
	return snapshot
}

// copied returns how long the driver took to copy the volumes of a snapshot.
func (w *world) copied(snapshot *v1alpha1.ApplicationSnapshot) time.Duration {
	w.T.Helper()
	direct, err := snapshots.NewClient(w.Cluster.RESTConfig(), w.Client.RESTMapper())
	require.NoError(w.T, err)
	var copied time.Duration
	for _, v := range snapshot.Status.Volumes {
		of := &snapshotv1.VolumeSnapshot{}
		require.NoError(w.T, direct.Get(w.T.Context(), client.ObjectKey{Namespace: snapshot.Namespace, Name: v.VolumeSnapshot}, of))
		took := w.volumes.Driver.Took("snapshot-" + string(of.UID)) // as csi-snapshotter names it
		require.NotZero(w.T, took)
		copied += took
	}
	return copied
}

// clone restores the snapshot into another namespace under another name.
func (w *world) clone(snapshot *v1alpha1.ApplicationSnapshot, committed int) {
	w.T.Helper()
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "staging"}})
	clone := &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "staging", Name: "trial"},
		Spec: v1alpha1.StatefulApplicationSpec{
			ApplicationName: "trial",
			Source: &v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{
				Namespace: snapshot.Namespace, Name: snapshot.Name,
			}},
			ValueSubstitutionRules: []v1alpha1.ValueSubstitutionRule{
				{Type: v1alpha1.SubstitutionName, OldValue: "shop", NewValue: "trial"},
				{Type: v1alpha1.SubstitutionLabel, Key: "app.kubernetes.io/name", OldValue: "shop", NewValue: "trial"},
			},
		},
	}
	w.Create(clone)
	hub.AwaitReady(w.World, clone)
	w.awaitPod("staging", "trial-0")
	restored := w.orders("staging", "trial-0")
	assert.GreaterOrEqual(w.T, restored, committed, "what was committed before the hook returned")
	assert.Less(w.T, restored, w.orders(w.Namespace, "shop-0"), "the shop goes on selling")
	w.psql("staging", "trial-0", "create extension amcheck")
	w.exec("staging", "trial-0", "pg_amcheck --all --heapallindexed")
	assert.Equal(w.T, "1000000", w.psql("staging", "trial-0", "select count(*) from pgbench_accounts"))
}

func (w *world) rollBack(snapshot *v1alpha1.ApplicationSnapshot, committed int) {
	w.T.Helper()
	before := w.orders(w.Namespace, "shop-0")
	rollback := &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Name: "back"},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: "postgres",
			ApplicationName:   "shop",
			Source:            v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: snapshot.Name}},
		},
	}
	w.Create(rollback)
	began, phase := time.Now(), v1alpha1.RollbackPhase("")
	hub.Await(w.World, rollback, "the application is as in the snapshot", func(r *v1alpha1.ApplicationRollback) bool {
		if r.Status.Phase != phase { // Saving and Restoring have the driver copy the volume
			phase = r.Status.Phase
			w.T.Logf("rollback: %s after %s", phase, time.Since(began).Round(time.Millisecond))
		}
		return r.Status.Phase == v1alpha1.RollbackCompleted || conditions.IsStalled(r)
	})
	require.Equal(w.T, v1alpha1.RollbackCompleted, rollback.Status.Phase, "%v", rollback.Status.Error)
	w.awaitPod(w.Namespace, "shop-0")
	restored := w.orders(w.Namespace, "shop-0")
	assert.GreaterOrEqual(w.T, restored, committed)
	assert.Less(w.T, restored, before)
	hub.Change(w.World, rollback, func(r *v1alpha1.ApplicationRollback) { r.Spec.Decision = v1alpha1.RollbackUndone })
	hub.Await(w.World, rollback, "the application is as before", func(r *v1alpha1.ApplicationRollback) bool {
		return r.Status.Phase == v1alpha1.RollbackReverted || conditions.IsStalled(r)
	})
	require.Equal(w.T, v1alpha1.RollbackReverted, rollback.Status.Phase, "%v", rollback.Status.Error)
	w.awaitPod(w.Namespace, "shop-0")
	assert.GreaterOrEqual(w.T, w.orders(w.Namespace, "shop-0"), before, "what was sold before the rollback")
}
