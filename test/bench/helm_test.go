package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// releases is how many installations there are, each in its own namespace.
const releases = 100

// helm100 is 100 installations of a chart, and the views of what it creates and of the floor.
type helm100 struct {
	*hub
	process waybill
	wanted  *observe.View // the installations
	workers *observe.View // all Deployments
	pods    *observe.View // all Pods
	bare    *floor
}

func startHelm100(b *testing.B) *helm100 {
	b.Helper()
	t := &helm100{hub: startHub(b, true)}
	for i := range releases {
		t.namespace(b, ownNamespace(i))
		t.namespace(b, floorNamespace(i))
	}
	t.bare = newFloor(b, t.RESTConfig(), connections)
	t.wanted, t.workers, t.pods = t.view(b, installations, ""), t.view(b, deployments, ""), t.view(b, pods, "")
	t.process = startSync(b, t.hub)
	t.defineApplication(b, "sized")
	t.registerItself(b)
	return t
}

func ownNamespace(i int) string   { return fmt.Sprintf("own-%03d", i) }
func floorNamespace(i int) string { return fmt.Sprintf("floor-%03d", i) }

// runValues returns the values that a run changes: a text in the Pods, so that they are replaced.
func runValues(run int) map[string]any {
	return map[string]any{"ui": map[string]any{"message": fmt.Sprintf("run %d.", run)}}
}

// onFloor matches an object of the bare program.
func onFloor(o *observe.Object) bool { return strings.HasPrefix(o.GetNamespace(), "floor-") }

// rolledOut matches a Deployment all of whose Pods are of the run and Ready.
func rolledOut(run int) observe.Match {
	return func(o *observe.Object) bool {
		status, _, _ := unstructured.NestedMap(o.Object, "status") // without one it is not rolled out
		return status["observedGeneration"] == o.GetGeneration() && status["updatedReplicas"] == int64(1) &&
			status["availableReplicas"] == int64(1) && status["replicas"] == int64(1) &&
			strings.Contains(fmt.Sprint(o.Object["spec"]), fmt.Sprintf("run %d.", run))
	}
}

// bareReleases prepares the patches of the bare program: the objects, and a Secret for each
// release.
func bareReleases(b *testing.B, run int) []patch {
	b.Helper()
	var manifests []string
	for i := range releases {
		manifests = append(manifests, bareRelease(b, floorNamespace(i), run)...)
	}
	return prepare(b, manifests)
}

// floorOf returns how long the bare program takes until all Pods are Ready.
func (t *helm100) floorOf(b *testing.B, patches []patch, run int) float64 {
	b.Helper()
	began := time.Now()
	t.bare.apply(b, patches)
	await(b, t.workers, releases, observe.Both(onFloor, rolledOut(run)))
	return time.Since(began).Seconds()
}

func (t *helm100) install(b *testing.B, run int) {
	b.Helper()
	require.NoError(b, parallel(releases, func(i int) error {
		inst := installation(ownNamespace(i), definition, runValues(run))
		_, err := t.client.Resource(installations).Namespace(inst.GetNamespace()).Create(b.Context(), inst, metav1.CreateOptions{})
		return err
	}))
}

func (t *helm100) upgrade(b *testing.B, run int) {
	b.Helper()
	require.NoError(b, parallel(releases, func(i int) error {
		patch := fmt.Appendf(nil, `{"spec":{"values":{"ui":{"message":"run %d."}}}}`, run)
		_, err := t.client.Resource(installations).Namespace(ownNamespace(i)).Patch(b.Context(), definition, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}))
}

// readyRevision matches an installation that is Ready with that revision of its release.
func readyRevision(revision int) observe.Match {
	return observe.Both(observe.Ready, func(o *observe.Object) bool {
		is, _, _ := unstructured.NestedInt64(o.Object, "status", "release", "revision")
		return is == int64(revision)
	})
}

// helm100Install measures how long 100 new installations take until all are Ready.
func helm100Install(b *testing.B, s *results) {
	t := startHelm100(b)
	var took, least, calls samples
	for run := 1; b.Loop(); run++ {
		patches := bareReleases(b, run)
		least.add(t.floorOf(b, patches, run))
		t.bare.remove(b, patches)
		await(b, t.pods, 0, onFloor)

		before := t.mark(b)
		began := time.Now()
		t.install(b, run)
		await(b, t.wanted, releases, observe.Ready)
		took.since(began)
		calls.add(t.requests(b, before).count() / releases)

		for i := range releases {
			require.NoError(b, t.client.Resource(installations).Namespace(ownNamespace(i)).Delete(b.Context(), definition, metav1.DeleteOptions{}))
		}
		await(b, t.wanted, 0, observe.Any)
		await(b, t.pods, 0, observe.Any)
	}
	t.report(s, took, least, calls)
}

func (t *helm100) report(s *results, took, least, calls samples) {
	s.atMost("", took.median()/least.median(), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.atMost("requests", calls.median(), "each", 25)
	s.rss(t.process)
}

// helm100Upgrade measures how long 100 installations take to be upgraded to other values.
func helm100Upgrade(b *testing.B, s *results) {
	t := startHelm100(b)
	t.floorOf(b, bareReleases(b, 0), 0)
	t.install(b, 0)
	await(b, t.wanted, releases, observe.Ready)
	var took, least, calls samples
	for run := 1; b.Loop(); run++ {
		least.add(t.floorOf(b, bareReleases(b, run), run))

		before := t.mark(b)
		began := time.Now()
		t.upgrade(b, run)
		await(b, t.wanted, releases, readyRevision(run+1))
		took.since(began)
		calls.add(t.requests(b, before).count() / releases)
	}
	t.report(s, took, least, calls)
}

// helm100Restart measures the requests of 100 installations after a restart when nothing changed.
func helm100Restart(b *testing.B, s *results) {
	t := startHelm100(b)
	t.install(b, 0)
	await(b, t.wanted, releases, observe.Ready)
	var calls samples
	for b.Loop() {
		require.NoError(b, t.process.Kill())
		before := t.mark(b)
		t.process = startSync(b, t.hub)
		token := newToken()
		require.NoError(b, parallel(releases, func(i int) error {
			return t.requestReconcile(b.Context(), t.client.Resource(installations).Namespace(ownNamespace(i)), definition, token)
		}))
		await(b, t.wanted, releases, handled(token))
		calls.add(t.requests(b, before).count() / releases)
	}
	s.atMost("requests", calls.max(), "each", 3)
	s.rss(t.process)
}

// helm100Noop measures the requests of 100 forced reconciliations when nothing changed.
func helm100Noop(b *testing.B, s *results) {
	t := startHelm100(b)
	t.install(b, 0)
	await(b, t.wanted, releases, observe.Ready)
	var took, objects, writes samples
	for b.Loop() {
		before := t.mark(b)
		token := newToken()
		began := time.Now()
		require.NoError(b, parallel(releases, func(i int) error {
			return t.requestReconcile(b.Context(), t.client.Resource(installations).Namespace(ownNamespace(i)), definition, token)
		}))
		await(b, t.wanted, releases, handled(token))
		took.since(began)
		all := t.requests(b, before)
		objects.add(all.count(toObjects))
		writes.add(all.count(of(installations), env.Writes) / releases)
	}
	s.inform("time", took.median(), "s")
	s.atMost("requests", objects.max(), "to objects", 0)
	s.atMost("writes", writes.max(), "each", 1)
	s.rss(t.process)
}
