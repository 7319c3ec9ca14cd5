package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/observe"
)

// fleet is a hub that delivers to a farm by GitSyncs.
type fleet struct {
	*hub
	*farm
	source
	process waybill
	syncs   *observe.View
}

// unit is how many ConfigMaps a GitSync of these rows delivers to a cluster.
const unit = 100

func startFleet(b *testing.B, size int, args ...string) *fleet {
	b.Helper()
	f := &fleet{farm: startFarm(b), hub: startHub(b, false)}
	for i := range size {
		lend(b, remoteName(i), f.user(i))
	}
	lend(b, delivered, f.users...)
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
		for name, content := range configMapFiles(remoteName(i), unit, mark) {
			files[remoteName(i)+"/"+name] = content
		}
	}
	return files
}

func remote20Dead(b *testing.B, s *sheet) {
	f := startFleet(b, remotes, "--workers=4")
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
func (f *fleet) pushRemotes(b *testing.B, mark string) float64 {
	b.Helper()
	commit, at := f.push(b, "remotes", remoteFiles(mark))
	require.NoError(b, parallel(remotes, func(i int) error {
		return f.ask(b.Context(), f.client.Resource(gitSyncs).Namespace(system), remoteName(i), newToken())
	}))
	await(b, f.syncs, remotes-deadRemotes, observe.Both(readyAt(commit), func(o *observe.Object) bool {
		return o.GetName() >= remoteName(deadRemotes)
	}))
	var took samples
	took.since(at)
	return took[0]
}

// ten is the number of clusters that one GitSync delivers to, in the row with a dead one.
const ten = 10

func deadOneOfTen(b *testing.B, s *sheet) {
	f := startFleet(b, ten)
	f.push(b, "all", configMapFiles(delivered, unit, "first"))
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
func (f *fleet) pushAll(b *testing.B, mark string) float64 {
	b.Helper()
	commit, at := f.push(b, "all", configMapFiles(delivered, unit, mark))
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
	var took samples
	took.since(at)
	return took[0]
}
