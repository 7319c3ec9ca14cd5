package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// settling is how long after the last change there may still be requests about it: events, and
	// the first requests to a new cluster.
	settling = 15 * time.Second
	// window is how long there may be no requests, in each run. The repository is checked several
	// times in it.
	window   = 12 * time.Second
	interval = "3s"
)

// idleRequests measures a GitSync for the hub, one for user clusters, and an installation in each
// of those: when nothing changes, there are no requests.
func idleRequests(b *testing.B, s *results) {
	p := startTwoClusters(b, map[string]any{"interval": interval})
	p.namespace(b, "here")
	p.create(b, gitSyncs, gitSync("here", "here", p.source, map[string]any{"interval": interval, "wait": true}))
	p.push(b, "here", configMapFiles("here", 50, "idle"))
	wanted, err := yaml.Marshal(installation(delivered, "idle", nil).Object)
	require.NoError(b, err)
	commit, _ := p.push(b, twoClusterSync, twoClusterFiles(map[string]string{"installation.yaml": string(wanted)}))
	await(b, p.syncs, 2, readyAt(commit))
	for _, user := range p.users {
		await(b, user.view(b, installations, delivered), 1, observe.Ready)
	}
	<-time.After(settling)

	var here, there samples
	for b.Loop() {
		checks := len(p.server.Requests())
		calls := idleWindow(b, append([]*hub{p.hub}, p.users...)...)
		here, there = append(here, calls[0]), append(there, calls[1:]...)
		require.Greater(b, len(p.server.Requests()), checks, "the repository was not checked: the window says nothing")
	}
	s.atMost("", here.max(), "requests", 0)
	s.atMost("user-cluster", there.max(), "requests", 0)
	s.rss(p.process)
}

// idleWindow returns how many requests waybill-sync sends to each of some clusters in a window.
func idleWindow(b *testing.B, all ...*hub) samples {
	b.Helper()
	marks := make([]env.AuditMark, len(all))
	for i, h := range all {
		marks[i] = h.mark(b)
	}
	<-time.After(window)
	var calls samples
	for i, h := range all {
		calls.add(h.requests(b, marks[i]).count())
	}
	return calls
}
