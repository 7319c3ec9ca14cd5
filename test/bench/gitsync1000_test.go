package bench

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// gitSync1000 is one GitSync with 1,000 ConfigMaps of 2 KB.
type gitSync1000 struct {
	*hub
	source
	process waybill
	maps    *observe.View // delivered by the GitSync
	syncs   *observe.View
}

const (
	many      = 1000
	delivered = "delivered" // the namespace
	manySync  = "many"      // the GitSync
)

// startGitSync1000 returns with a GitSync that has delivered one ConfigMap.
func startGitSync1000(b *testing.B) *gitSync1000 {
	b.Helper()
	t := &gitSync1000{hub: startHub(b, false)}
	t.namespace(b, delivered)
	t.source = startSource(b, t.hub)
	t.maps, t.syncs = t.view(b, configMaps, delivered), t.view(b, gitSyncs, system)
	t.process = startSync(b, t.hub)
	commit, _ := t.push(b, "many", withAlways(nil))
	t.create(b, gitSyncs, gitSync(manySync, "many", t.source, nil))
	t.settled(b, commit)
	return t
}

// withAlways adds the one ConfigMap that is always there: a folder without manifests is an error.
func withAlways(files map[string]string) map[string]string {
	all := map[string]string{"always.yaml": configMapManifest(delivered, "always", "always")}
	maps.Copy(all, files)
	return all
}

// settled waits until the GitSync is Ready at a commit.
func (t *gitSync1000) settled(b *testing.B, commit string) {
	b.Helper()
	await(b, t.syncs, 1, observe.Named(manySync, readyAt(commit)))
}

// pushed pushes, requests a reconciliation at once, and returns the commit and the time of the
// push.
func (t *gitSync1000) pushed(b *testing.B, files map[string]string) (string, time.Time) {
	b.Helper()
	commit, at := t.push(b, "many", withAlways(files))
	t.reconcile(b, gitSyncs, system, manySync)
	return commit, at
}

// marked matches a ConfigMap of a state of the repository.
func marked(mark string) observe.Match { return observe.Has(mark, "data", "mark") }

// gitSync1000Create measures how long it takes from a push of 1,000 ConfigMaps until all are there.
func gitSync1000Create(b *testing.B, s *results) {
	t := startGitSync1000(b)
	bare := newFloor(b, t.RESTConfig(), connections)
	t.namespace(b, "floor")
	var took, least, perObject samples
	for run := 1; b.Loop(); run++ {
		mark := fmt.Sprint("run ", run)
		least.add(t.floor(b, bare, mark))

		before := t.mark(b)
		commit, at := t.pushed(b, configMapFiles(delivered, many, mark))
		await(b, t.maps, many, marked(mark))
		took.since(at)
		t.settled(b, commit)
		perObject.add(t.requests(b, before).count(of(configMaps), ofOne) / many)

		commit, _ = t.pushed(b, nil)
		await(b, t.maps, 0, marked(mark))
		t.settled(b, commit)
	}
	s.atMost("", took.median()/least.median(), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.atMost("requests", perObject.median(), "per object", 1)
	s.rss(t.process)
}

// floor returns how long the bare program takes for the same objects.
func (t *gitSync1000) floor(b *testing.B, bare *floor, mark string) float64 {
	b.Helper()
	patches := prepare(b, slices.Collect(maps.Values(configMapFiles("floor", many, mark))))
	began := time.Now()
	bare.apply(b, patches)
	took := time.Since(began).Seconds()
	bare.remove(b, patches)
	return took
}

// gitSync1000One measures how long it takes from a push that changes one of 1,000 ConfigMaps until it
// is there.
func gitSync1000One(b *testing.B, s *results) {
	t := startGitSync1000(b)
	files := configMapFiles(delivered, many, "all")
	commit, _ := t.pushed(b, files)
	t.settled(b, commit)
	var took, calls samples
	for run := 1; b.Loop(); run++ {
		mark := fmt.Sprint("run ", run)
		files["item-0500.yaml"] = configMapManifest(delivered, "item-0500", mark)
		before := t.mark(b)
		commit, at := t.pushed(b, files)
		await(b, t.maps, 1, marked(mark))
		took.since(at)
		t.settled(b, commit)
		calls.add(t.requests(b, before).count())
	}
	s.atMost("", took.median(), "s", 0.5)
	s.atMost("requests", calls.median(), "requests", 9)
	s.rss(t.process)
}

// gitSync1000Noop measures the requests of a forced reconciliation when nothing changed.
func gitSync1000Noop(b *testing.B, s *results) {
	t := startGitSync1000(b)
	commit, _ := t.pushed(b, configMapFiles(delivered, many, "all"))
	t.settled(b, commit)
	var took, objects, writes samples
	for b.Loop() {
		before := t.mark(b)
		began := time.Now()
		token := t.reconcile(b, gitSyncs, system, manySync)
		await(b, t.syncs, 1, observe.Named(manySync, handled(token)))
		took.since(began)
		all := t.requests(b, before)
		objects.add(all.count(toObjects))
		writes.add(all.count(of(gitSyncs), env.Writes))
	}
	s.inform("time", took.median(), "s")
	s.atMost("requests", objects.max(), "to objects", 0)
	s.atMost("writes", writes.max(), "writes", 1)
	s.rss(t.process)
}
