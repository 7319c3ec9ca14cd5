package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/observe"
)

const (
	// savedCount is how many applications have data, savedClaims how many claims each has.
	savedCount, savedClaims = 100, 3
	// keptCount is how many ApplicationSnapshots there are where nothing happens.
	keptCount = 500
	// driverLimit is how long the driver may take for 300 volumes or snapshots.
	driverLimit = 10 * time.Minute
	// coldClass scales applications down, which have nothing to scale: what is left is Waybill's own work.
	coldClass = "cold"
)

// Resources of applications with data.
var (
	claims              = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumeSnapshots     = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	statefuls           = v1alpha1.GroupVersion.WithResource("statefulapplications")
	appSnapshots        = v1alpha1.GroupVersion.WithResource("applicationsnapshots")
	appSnapshotClasses  = v1alpha1.GroupVersion.WithResource("applicationsnapshotclasses")
	appSnapshotContents = v1alpha1.GroupVersion.WithResource("applicationsnapshotcontents")
)

// saved is a cluster with applications that have data.
type saved struct {
	*hub
	bare               *floor
	ours, theirs, kept *observe.View // ApplicationSnapshots, VolumeSnapshots, ApplicationSnapshotContents
	cuts               *cuts
}

// startSaved returns with all claims of that many applications bound, and no process running.
func startSaved(b *testing.B, count int) *saved {
	b.Helper()
	c := &saved{hub: startCluster(b, env.Options{Name: "saved", Pods: true, CRDs: []string{ourCRDs, volumes.CRDs(b)}})}
	volumes.On(b, c.Cluster)
	c.namespace(b, system)
	for i := range savedCount {
		c.namespace(b, ownNamespace(i))
	}
	c.bare = newFloor(b, c.RESTConfig(), connections)
	c.create(b, appSnapshotClasses, ours("ApplicationSnapshotClass", "", coldClass, map[string]any{"snapshotter": v1alpha1.DataHandler, "quiesce": string(v1alpha1.QuiesceScaleDown)}))
	bound := c.view(b, claims, "")
	require.NoError(b, parallel(count, func(i int) error { return c.install(b, i) }))
	awaitFor(b, driverLimit, bound, count*savedClaims, observe.Has("Bound", "status", "phase"))
	c.ours, c.theirs, c.kept = c.view(b, appSnapshots, ""), c.view(b, volumeSnapshots, ""), c.view(b, appSnapshotContents, "")
	c.cuts = c.watchCuts(b)
	return c
}

// ours returns an object of one of our kinds, whose fields are at the top or in its spec.
func ours(kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// install creates the i-th application and its claims.
func (c *saved) install(b *testing.B, i int) error {
	app := application(ownNamespace(i), applicationName(i), "PersistentVolumeClaim")
	all := map[schema.GroupVersionResource][]*unstructured.Unstructured{applications: {app}, statefuls: {
		ours("StatefulApplication", ownNamespace(i), applicationName(i), map[string]any{"spec": map[string]any{"applicationName": applicationName(i)}}),
	}}
	for n := range savedClaims {
		all[claims] = append(all[claims], &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim",
			"metadata": map[string]any{"name": sizedName(i, n), "labels": map[string]any{"app": applicationName(i)}},
			"spec": map[string]any{
				"storageClassName": volumes.ImmediateClass, "accessModes": []any{"ReadWriteOnce"},
				"resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
			},
		}})
	}
	for gvr, objects := range all {
		for _, o := range objects {
			if _, err := c.client.Resource(gvr).Namespace(ownNamespace(i)).Create(b.Context(), o, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// cuts are when the VolumeSnapshots of a cluster were first seen, and first seen to be cut.
type cuts struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]cut
}

// cut is that of the VolumeSnapshot which has a name now.
type cut struct {
	uid      types.UID
	made, at time.Time
}

// watchCuts begins to watch until the row ends.
func (c *saved) watchCuts(b *testing.B) *cuts {
	b.Helper()
	seen := &cuts{byName: map[types.NamespacedName]cut{}}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(c.client, 0).ForResource(volumeSnapshots).Informer()
	put := func(o any) {
		if o, ok := o.(*unstructured.Unstructured); ok {
			seen.put(o)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: put, UpdateFunc: func(_, o any) { put(o) }})
	require.NoError(b, err)
	go informer.RunWithContext(b.Context())
	require.True(b, cache.WaitForCacheSync(b.Context().Done(), informer.HasSynced))
	return seen
}

func (s *cuts) put(o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	known := s.byName[key]
	if known.uid != o.GetUID() {
		known = cut{uid: o.GetUID(), made: time.Now()}
	}
	if taken, _, _ := unstructured.NestedString(o.Object, "status", "creationTime"); taken != "" && known.at.IsZero() {
		known.at = time.Now()
	}
	s.byName[key] = known
}

// of returns when the first of the VolumeSnapshots of a namespace was created, and when the last of them was cut; zero
// for what has not been seen of all.
func (s *cuts) of(namespace string, names []string) (made, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		seen := s.byName[types.NamespacedName{Namespace: namespace, Name: name}]
		if seen.at.IsZero() {
			return time.Time{}, time.Time{}
		}
		if made.IsZero() || seen.made.Before(made) {
			made = seen.made
		}
		if seen.at.After(at) {
			at = seen.at
		}
	}
	return made, at
}

// await is of, once all is seen.
func (s *cuts) await(b *testing.B, namespace string, names []string) (made, at time.Time) {
	b.Helper()
	require.Eventually(b, func() bool {
		made, at = s.of(namespace, names)
		return !at.IsZero()
	}, waitLimit, 10*time.Millisecond)
	return made, at
}

// floorOf returns how long a bare program takes that creates a VolumeSnapshot of each claim, and adds how long the
// driver takes for those of each application.
func (c *saved) floorOf(b *testing.B, driver *samples) float64 {
	b.Helper()
	var manifests []string
	for i := range savedCount {
		for n := range savedClaims {
			manifests = append(manifests, fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {namespace: %s, name: bare-%s}\n"+
				"spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}\n", ownNamespace(i), sizedName(i, n), volumes.SnapshotClass, sizedName(i, n)))
		}
	}
	patches := prepare(b, manifests)
	began := time.Now()
	c.bare.apply(b, patches)
	awaitFor(b, driverLimit, c.theirs, len(patches), func(o *observe.Object) bool {
		ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse") // none is not ready
		return ready
	})
	took := time.Since(began).Seconds()
	for i := range savedCount {
		var names []string
		for n := range savedClaims {
			names = append(names, "bare-"+sizedName(i, n))
		}
		made, at := c.cuts.await(b, ownNamespace(i), names)
		driver.add(at.Sub(made).Seconds())
	}
	c.drop(b, volumeSnapshots)
	return took
}

// drop deletes all snapshots of a kind, and waits until nothing is left of any.
func (c *saved) drop(b *testing.B, gvr schema.GroupVersionResource) {
	b.Helper()
	require.NoError(b, parallel(savedCount, func(i int) error {
		return c.client.Resource(gvr).Namespace(ownNamespace(i)).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	}))
	for _, view := range []*observe.View{c.ours, c.kept, c.theirs} {
		awaitFor(b, driverLimit, view, 0, observe.Any)
	}
}

// saveAll takes a snapshot of each application at once, and returns how long that takes.
func (c *saved) saveAll(b *testing.B) float64 {
	b.Helper()
	began := time.Now()
	require.NoError(b, parallel(savedCount, func(i int) error {
		o := ours(v1alpha1.ApplicationSnapshotKind, ownNamespace(i), applicationName(i), map[string]any{"spec": map[string]any{
			"snapshotClassName": coldClass, "source": map[string]any{"type": "Application", "applicationName": applicationName(i)},
		}})
		_, err := c.client.Resource(appSnapshots).Namespace(ownNamespace(i)).Create(b.Context(), o, metav1.CreateOptions{})
		return err
	}))
	awaitFor(b, driverLimit, c.ours, savedCount, observe.Ready)
	return time.Since(began).Seconds()
}

// quiescing is what the time is made of for which an application is quiesced: until its VolumeSnapshots are created, until
// the driver has cut all of them, and until it is released.
type quiescing struct{ whole, before, driver, after samples }

// own returns what is not the driver's.
func (r quiescing) own() samples {
	var all samples
	for i, whole := range r.whole {
		all.add(whole - r.driver[i])
	}
	return all
}

// add adds those of all snapshots.
func (r *quiescing) add(b *testing.B, c *saved) {
	b.Helper()
	for _, o := range c.ours.All() {
		s := &v1alpha1.ApplicationSnapshot{}
		require.NoError(b, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s))
		var names []string
		for _, v := range s.Status.Volumes {
			names = append(names, v.VolumeSnapshot)
		}
		require.Len(b, names, savedClaims)
		made, at := c.cuts.await(b, s.Namespace, names)
		whole := s.Status.QuiescedFor.Duration
		r.whole.add(whole.Seconds())
		r.before.add(made.Sub(s.Status.QuiescedFrom.Time).Seconds())
		r.driver.add(at.Sub(made).Seconds())
		r.after.add(s.Status.QuiescedFrom.Add(whole).Sub(at).Seconds())
	}
}

// snapshots100 measures one snapshot of each of 100 applications with 3 claims, each in its own namespace, all at once, against a bare program that
// creates the 300 VolumeSnapshots, and for how long the applications are quiesced beside the driver's own time.
func snapshots100(b *testing.B, s *results) {
	c := startSaved(b, savedCount)
	var took, least, calls, bare samples
	var quiesced quiescing
	peak := 0.0
	for b.Loop() {
		least.add(c.floorOf(b, &bare))
		process := startRoles(b, c.hub, "data")
		<-time.After(settling)
		before := c.mark(b)
		took.add(c.saveAll(b))
		calls.add(c.requests(b, before).count() / savedCount)
		quiesced.add(b, c)
		c.drop(b, appSnapshots)
		peak = max(peak, process.peak(b))
		require.NoError(b, process.Kill())
	}
	s.atMost("", took.median()/least.median(), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.inform("requests", calls.median(), "each")
	s.atMost("quiesced-p99", quiesced.own().percentile(99), "s", 1)
	s.inform("quiesced-whole-p99", quiesced.whole.percentile(99), "s")
	s.inform("quiesced-before-p99", quiesced.before.percentile(99), "s")
	s.inform("quiesced-driver-p99", quiesced.driver.percentile(99), "s")
	s.inform("quiesced-after-p99", quiesced.after.percentile(99), "s")
	s.inform("floor-driver-p99", bare.percentile(99), "s")
	s.atMost("rss", peak, "MiB", maxRSS)
}

// keep writes a snapshot that is ready, with its content, as a process has left them.
func (c *saved) keep(b *testing.B, i int) error {
	name, namespace := fmt.Sprintf("kept-%03d", i), ownNamespace(i%savedCount)
	source := map[string]any{"type": "Application", "applicationName": applicationName(i % savedCount)}
	made, err := c.client.Resource(appSnapshots).Namespace(namespace).Create(b.Context(), finalized(ours(v1alpha1.ApplicationSnapshotKind, namespace, name,
		map[string]any{"spec": map[string]any{"snapshotClassName": coldClass, "source": source}})), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	var cut []any
	refs := map[string]any{}
	for n := range savedClaims {
		of := sizedName(i%savedCount, n)
		cut = append(cut, map[string]any{"claim": of, "className": volumes.SnapshotClass, "volumeSnapshot": "snap-" + name + of, "cut": true, "ready": true})
		refs[of] = map[string]any{"namespace": namespace, "name": "snap-" + name + of}
	}
	handle := map[string]any{"type": "Object", "object": map[string]any{"name": name, "chunks": int64(1)}, "digest": "sha256:" + strings.Repeat("0", 64)}
	content := finalized(ours("ApplicationSnapshotContent", "", name, map[string]any{"spec": map[string]any{
		"snapshotClassName": coldClass, "volumeSnapshotRefs": refs, "metadataHandle": handle, "deletionPolicy": "Delete",
		"snapshotRef": map[string]any{"namespace": namespace, "name": name, "uid": string(made.GetUID())},
	}}))
	if _, err := c.client.Resource(appSnapshotContents).Create(b.Context(), content, metav1.CreateOptions{}); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": v1alpha1.SucceededReason, "message": message, "lastTransitionTime": now}
	}
	says := fmt.Sprintf("bound to ApplicationSnapshotContent %q", name)
	status := map[string]any{
		"observedGeneration": made.GetGeneration(), "phase": string(v1alpha1.SnapshotReady), "boundSnapshotContentName": name, "completionTime": now, "creationTime": now,
		"consistency": string(v1alpha1.ConsistencyCold), "volumes": cut, "metadata": handle,
		"plan":       map[string]any{"applicationName": applicationName(i % savedCount), "quiesce": string(v1alpha1.QuiesceScaleDown), "metadata": "Object", "deletionPolicy": "Delete"},
		"conditions": []any{condition(v1alpha1.ReadyCondition, says), condition(v1alpha1.SnapshotReadyCondition, says)},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = c.client.Resource(appSnapshots).Namespace(namespace).Patch(b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func finalized(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetFinalizers([]string{v1alpha1.Finalizer})
	return o
}

// resting returns the peak memory of a fresh process that has nothing to do, and how many requests it sends then.
func (c *saved) resting(b *testing.B) (peak, idle float64) {
	b.Helper()
	process := startRoles(b, c.hub, "data")
	<-time.After(2 * settling)
	idle = idleWindow(b, c.hub).max()
	peak = process.peak(b)
	require.NoError(b, process.Kill())
	return peak, idle
}

// snapshots500Idle compares a process where there are 500 snapshots that are ready with one where there is none.
func snapshots500Idle(b *testing.B, s *results) {
	c := startSaved(b, 0)
	none, _ := c.resting(b)
	require.NoError(b, parallel(keptCount, func(i int) error { return c.keep(b, i) }))
	first := startRoles(b, c.hub, "data") // which says what it finds, once
	await(b, c.kept, keptCount, observe.Ready)
	<-time.After(settling)
	require.NoError(b, first.Kill())
	var more, idle samples
	for b.Loop() {
		peak, requests := c.resting(b)
		more.add(peak - none)
		idle.add(requests)
	}
	await(b, c.ours, keptCount, observe.Ready)
	s.atMost("", idle.max(), "requests", 0)
	s.atMost("more", more.max(), "MiB", 40)
	s.inform("none", none, "MiB")
}
