package bench

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// crowdSize is how many installations one cluster has, crowdNamespaces in how many namespaces.
	crowdSize, crowdNamespaces = 300, 30
)

// crowdKinds are the kinds that a process has to list to know what became of the installations.
var crowdKinds = []schema.GroupVersionResource{definitions, installations, applications, secrets, services, accounts, deployments}

// crowd is a cluster with 300 installations.
type crowd struct {
	*hub
	bare   *floor
	known  *observe.View // the KubernetesCluster
	wanted *observe.View // the installations
	// alone is how long a process takes to start without any installation.
	alone samples
}

// startCrowd returns with all installations Ready, and no process running.
func startCrowd(b *testing.B) *crowd {
	b.Helper()
	t := &crowd{hub: startHub(b, false)}
	t.bare = newFloor(b, t.RESTConfig(), connections)
	for i := range crowdNamespaces {
		t.namespace(b, ownNamespace(i))
	}
	t.known, t.wanted = t.view(b, clusters, system), t.view(b, installations, "")
	process := startSync(b, t.hub)
	t.defineApplication(b, "sized")
	t.registerItself(b)
	require.NoError(b, process.Kill())
	for range 3 {
		took, alone := t.coldStart(b)
		t.alone.add(took)
		require.NoError(b, alone.Kill())
	}

	process = startSync(b, t.hub)
	require.NoError(b, parallel(crowdSize, func(i int) error {
		inst := installation(ownNamespace(i%crowdNamespaces), fmt.Sprintf("app-%03d", i), map[string]any{"replicas": 0})
		_, err := t.client.Resource(installations).Namespace(inst.GetNamespace()).Create(b.Context(), inst, metav1.CreateOptions{})
		return err
	}))
	await(b, t.wanted, crowdSize, observe.Ready)
	<-time.After(settling) // what is due once
	require.NoError(b, process.Kill())
	return t
}

// coldStart spoils every status, and returns how long a fresh process takes to write them all again.
func (t *crowd) coldStart(b *testing.B) (float64, waybill) {
	b.Helper()
	t.spoil(b, clusters, t.known)
	t.spoil(b, installations, t.wanted)
	began := time.Now()
	process := startSync(b, t.hub)
	await(b, t.known, 1, observe.Ready)
	await(b, t.wanted, len(t.wanted.All()), observe.Ready)
	return time.Since(began).Seconds(), process
}

// spoil makes the condition Ready of all objects of a view Unknown, so that it shows when a process has
// written it.
func (t *crowd) spoil(b *testing.B, gvr schema.GroupVersionResource, v *observe.View) {
	b.Helper()
	all := v.All()
	require.NoError(b, parallel(len(all), func(i int) error {
		_, err := t.client.Resource(gvr).Namespace(all[i].GetNamespace()).Patch(b.Context(), all[i].GetName(), types.MergePatchType,
			spoiled(all[i]), metav1.PatchOptions{}, "status")
		return err
	}))
	await(b, v, 0, observe.Ready)
}

// spoiled returns the patch that makes the condition Ready of an object Unknown.
func spoiled(o *observe.Object) []byte {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // none stays none
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok && fields["type"] == v1alpha1.ReadyCondition {
			fields["status"] = string(metav1.ConditionUnknown)
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		panic(err) // it was JSON before
	}
	return patch
}

// floorOf returns how long a bare program takes to list the objects, and to write every status once.
func (t *crowd) floorOf(b *testing.B) float64 {
	b.Helper()
	var statuses []patch
	for _, o := range t.wanted.All() {
		statuses = append(statuses, patch{path: pathOf(installations, o.GetNamespace(), o.GetName()) + "/status", body: spoiled(o)})
	}
	began := time.Now()
	var group errgroup.Group
	for _, gvr := range crowdKinds {
		group.Go(func() error {
			_, err := t.client.Resource(gvr).List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
			return err
		})
	}
	require.NoError(b, group.Wait())
	t.bare.each(b, statuses, t.bare.merging)
	return time.Since(began).Seconds()
}

// awaitEvents waits until nothing has been sent for a while: each status that is right again is an Event, and those are written at a
// limited rate.
func (t *crowd) awaitEvents(b *testing.B) {
	b.Helper()
	require.Eventually(b, func() bool {
		mark := t.mark(b)
		<-time.After(settling)
		return t.requests(b, mark).count() == 0
	}, 2*time.Minute, time.Millisecond, "there are requests all the time")
}

// installations300Cold measures how long a fresh process takes until it has confirmed the status of 300
// installations that are as they should be. The limit is a multiple of the time that it takes to start
// without any, and that a bare program takes to list all objects and to write as many statuses: the row
// spoils these, to see when they are right. Then it measures the requests when nothing changes.
func installations300Cold(b *testing.B, s *results) {
	t := startCrowd(b)
	var took, least, calls, writes, idle samples
	peak := 0.0
	for b.Loop() {
		least.add(t.floorOf(b))
		before := t.mark(b)
		seconds, process := t.coldStart(b)
		took.add(seconds)
		all := t.requests(b, before)
		calls.add(all.count() / crowdSize)
		<-time.After(settling)
		writes.add(t.requests(b, before).count(toObjects, env.Writes))
		t.awaitEvents(b)
		idle = append(idle, idleWindow(b, t.hub)...)
		peak = max(peak, process.peak(b))
		require.NoError(b, process.Kill())
	}
	await(b, t.wanted, crowdSize, readyRevision(1))
	s.atMost("", took.median()/(t.alone.median()+least.median()), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("start", t.alone.median(), "s")
	s.inform("list", least.median(), "s")
	s.inform("requests", calls.median(), "each")
	s.atMost("writes", writes.max(), "to objects", 0)
	s.atMost("idle", idle.max(), "requests", 0)
	s.atMost("rss", peak, "MiB", maxRSS)
}
