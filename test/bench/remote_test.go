package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/observe"
)

// remoteSyncs is a hub that delivers to other clusters by GitSyncs.
type remoteSyncs struct {
	*hub
	*userClusters
	source
	process waybill
	syncs   *observe.View
}

// perCluster is how many ConfigMaps a GitSync of these rows delivers to a cluster.
const perCluster = 100

func startRemoteSyncs(b *testing.B, size int, args ...string) *remoteSyncs {
	b.Helper()
	f := &remoteSyncs{userClusters: startUserClusters(b), hub: startHub(b, false)}
	for i := range size {
		rowNamespace(b, remoteName(i), f.user(i))
	}
	rowNamespace(b, delivered, f.users...)
	f.source = startSource(b, f.hub)
	f.syncs = f.view(b, gitSyncs, system)
	f.process = startSync(b, f.hub, args...)
	f.join(b, f.hub, size)
	return f
}

const (
	remotes     = 20
	deadRemotes = 4
)

// remoteFiles returns a folder for each cluster.
func remoteFiles(mark string) map[string]string {
	files := map[string]string{}
	for i := range remotes {
		for name, content := range configMapFiles(remoteName(i), perCluster, mark) {
			files[remoteName(i)+"/"+name] = content
		}
	}
	return files
}

// remote20Dead measures how much longer the GitSyncs for 16 clusters take while four others, each
// with its own GitSync, hang.
func remote20Dead(b *testing.B, s *results) {
	f := startRemoteSyncs(b, remotes, "--workers=4")
	f.push(b, "remotes", remoteFiles("first"))
	for i := range remotes {
		f.create(b, gitSyncs, gitSync(remoteName(i), "remotes/"+remoteName(i), f.source, selecting(map[string]any{"name": remoteName(i)})))
	}
	await(b, f.syncs, remotes, observe.Ready)
	var healthy, withDead samples
	for run := 1; b.Loop(); run++ {
		healthy.add(f.pushRemotes(b, fmt.Sprint("alive ", run)))
		await(b, f.syncs, remotes, observe.Ready)

		f.hang(b, deadRemotes)
		withDead.add(f.pushRemotes(b, fmt.Sprint("dead ", run)))
		f.open(b)
		await(b, f.syncs, remotes, observe.Ready)
	}
	s.atMost("", withDead.median()/healthy.median(), "x none dead", 1.1)
	s.inform("none-dead", healthy.median(), "s")
	s.inform("4-dead", withDead.median(), "s")
	s.rss(f.process)
}

// pushRemotes changes the objects for every cluster, and returns how long it takes until the
// clusters that never hang hold them.
func (f *remoteSyncs) pushRemotes(b *testing.B, mark string) float64 {
	b.Helper()
	commit, at := f.push(b, "remotes", remoteFiles(mark))
	require.NoError(b, parallel(remotes, func(i int) error {
		return f.requestReconcile(b.Context(), f.client.Resource(gitSyncs).Namespace(system), remoteName(i), newToken())
	}))
	await(b, f.syncs, remotes-deadRemotes, observe.Both(readyAt(commit), func(o *observe.Object) bool {
		return o.GetName() >= remoteName(deadRemotes)
	}))
	return time.Since(at).Seconds()
}

// ten is the number of clusters that one GitSync delivers to, in the row with a dead one.
const ten = 10

// deadOneOfTen measures how much longer one GitSync for ten clusters takes to deliver to nine of
// them while the tenth hangs.
func deadOneOfTen(b *testing.B, s *results) {
	f := startRemoteSyncs(b, ten)
	f.push(b, "all", configMapFiles(delivered, perCluster, "first"))
	f.create(b, gitSyncs, gitSync("all", "all", f.source, selecting(map[string]any{"fleet": "all"})))
	await(b, f.syncs, 1, observe.Ready)
	var healthy, withDead samples
	for run := 1; b.Loop(); run++ {
		healthy.add(f.pushAll(b, fmt.Sprint("alive ", run)))
		await(b, f.syncs, 1, observe.Ready)

		f.hang(b, 1)
		withDead.add(f.pushAll(b, fmt.Sprint("dead ", run)))
		f.open(b)
		await(b, f.syncs, 1, observe.Ready)
	}
	s.atMost("", withDead.median()/healthy.median(), "x none dead", 1.1)
	s.inform("none-dead", healthy.median(), "s")
	s.inform("1-dead", withDead.median(), "s")
	s.rss(f.process)
}

// pushAll changes the objects for every cluster, and returns how long it takes until the GitSync
// reports that the nine that never hang hold them.
func (f *remoteSyncs) pushAll(b *testing.B, mark string) float64 {
	b.Helper()
	commit, at := f.push(b, "all", configMapFiles(delivered, perCluster, mark))
	f.reconcile(b, gitSyncs, system, "all")
	await(b, f.syncs, 1, func(o *observe.Object) bool {
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "clusters") // no list: no cluster is at the commit
		there := 0
		for _, item := range list {
			c, ok := item.(map[string]any)
			revision, _ := c["revision"].(string) // none: not this one
			if ok && c["name"] != remoteName(0) && c["ready"] == true && strings.HasSuffix(revision, commit) {
				there++
			}
		}
		return there == ten-1
	})
	return time.Since(at).Seconds()
}
