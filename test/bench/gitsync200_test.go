package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/observe"
)

// apps is how many GitSyncs read one repository, each with its own four objects.
const apps = 200

// gitSync200 is 200 GitSyncs on one repository, and the means to measure the floor.
type gitSync200 struct {
	*hub
	source
	process waybill
	syncs   *observe.View
	workers *observe.View // Deployments delivered by GitSyncs
	bare    *floor
	onFloor *observe.View // Deployments of the bare program
}

func startGitSync200(b *testing.B) *gitSync200 {
	b.Helper()
	t := &gitSync200{hub: startHub(b, false)}
	t.namespace(b, delivered)
	t.namespace(b, "floor")
	t.source = startSource(b, t.hub)
	t.bare = newFloor(b, t.RESTConfig(), connections)
	t.syncs = t.view(b, gitSyncs, system)
	t.workers, t.onFloor = t.view(b, deployments, delivered), t.view(b, deployments, "floor")
	t.process = startSync(b, t.hub)
	return t
}

func appName(i int) string { return fmt.Sprintf("app-%03d", i) }

// appFiles returns the content of the repository: a folder with one file for each GitSync.
func appFiles(namespace string, mark int) map[string]string {
	files := make(map[string]string, apps)
	for i := range apps {
		files[appName(i)+"/app.yaml"] = strings.Join(appManifests(namespace, appName(i), mark), "---\n")
	}
	return files
}

// observed matches a Deployment of a state of the repository that its controller has seen: without
// replicas it is then healthy.
func observed(mark int) observe.Match {
	return observe.Both(observe.Has(fmt.Sprint(mark), "metadata", "annotations", "mark"), func(o *observe.Object) bool {
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen == o.GetGeneration()
	})
}

// bareApps prepares the patches of the bare program for a state of the repository.
func bareApps(b *testing.B, mark int) []patch {
	b.Helper()
	var manifests []string
	for i := range apps {
		manifests = append(manifests, appManifests("floor", appName(i), mark)...)
	}
	return prepare(b, manifests)
}

// floorOf returns how long the bare program takes to apply a state of the repository, until
// all Deployments are healthy.
func (t *gitSync200) floorOf(b *testing.B, mark int) float64 {
	b.Helper()
	patches := bareApps(b, mark)
	began := time.Now()
	t.bare.apply(b, patches)
	await(b, t.onFloor, apps, observed(mark))
	return time.Since(began).Seconds()
}

func (t *gitSync200) createSyncs(b *testing.B) {
	b.Helper()
	require.NoError(b, parallel(apps, func(i int) error {
		sync := gitSync(appName(i), "apps/"+appName(i), t.source, map[string]any{"wait": true})
		_, err := t.client.Resource(gitSyncs).Namespace(system).Create(b.Context(), sync, metav1.CreateOptions{})
		return err
	}))
}

// gitSync200Create measures how long 200 new GitSyncs take until all are Ready.
func gitSync200Create(b *testing.B, s *results) {
	t := startGitSync200(b)
	var took, least, writes, calls samples
	for run := 1; b.Loop(); run++ {
		least.add(t.floorOf(b, run))
		t.bare.remove(b, bareApps(b, run))
		await(b, t.onFloor, 0, observe.Any)

		commit, _ := t.push(b, "apps", appFiles(delivered, run))
		before := t.mark(b)
		began := time.Now()
		t.createSyncs(b)
		await(b, t.syncs, apps, readyAt(commit))
		took.since(began)
		all := t.requests(b, before)
		writes.add(all.count(of(gitSyncs), statusWrite) / apps)
		calls.add(all.count() / apps)

		t.clear(b, gitSyncs, system, t.syncs)
		await(b, t.workers, 0, observe.Any)
	}
	s.atMost("", took.median()/least.median(), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.atMost("status-writes", writes.median(), "each", 3)
	s.inform("requests", calls.median(), "each")
	s.rss(t.process)
}

// gitSync200Push measures how long it takes from a push that changes every object of 200 GitSyncs
// until all are Ready.
func gitSync200Push(b *testing.B, s *results) {
	t := startGitSync200(b)
	commit, _ := t.push(b, "apps", appFiles(delivered, 0))
	t.floorOf(b, 0)
	t.createSyncs(b)
	await(b, t.syncs, apps, readyAt(commit))
	var took, least samples
	for run := 1; b.Loop(); run++ {
		least.add(t.floorOf(b, run))

		commit, at := t.push(b, "apps", appFiles(delivered, run))
		require.NoError(b, parallel(apps, func(i int) error {
			return t.requestReconcile(b.Context(), t.client.Resource(gitSyncs).Namespace(system), appName(i), newToken())
		}))
		await(b, t.syncs, apps, readyAt(commit))
		took.since(at)
	}
	s.atMost("", took.median()/least.median(), "x floor", 2)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.rss(t.process)
}
