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
func idleRequests(b *testing.B, s *sheet) {
	p := startPair(b, map[string]any{"interval": interval})
	p.namespace(b, "here")
	p.create(b, gitSyncs, gitSync("here", "here", p.source, map[string]any{"interval": interval, "wait": true}))
	p.push(b, "here", configMapFiles("here", 50, "idle"))
	wanted, err := yaml.Marshal(installation(delivered, "idle", nil).Object)
	require.NoError(b, err)
	commit, _ := p.push(b, pairSync, pairFiles(map[string]string{"installation.yaml": string(wanted)}))
	await(b, p.syncs, 2, readyAt(commit))
	for _, user := range p.users {
		await(b, user.view(b, installations, delivered), 1, observe.Ready)
	}
	<-time.After(settling)

	var here, there samples
	for b.Loop() {
		looks := len(p.server.Requests())
		hubMark, userMarks := p.mark(b), marksOf(b, p.users)
		<-time.After(window)
		here.add(p.requests(b, hubMark).count())
		for i, user := range p.users {
			there.add(user.requests(b, userMarks[i]).count())
		}
		require.Greater(b, len(p.server.Requests()), looks, "the repository was not looked at: the window says nothing")
	}
	s.atMost("", here.max(), "requests", 0)
	s.atMost("user-cluster", there.max(), "requests", 0)
	s.rss(p.process)
}

// marksOf marks the audit logs of several clusters.
func marksOf(b *testing.B, users []*hub) []env.AuditMark {
	b.Helper()
	marks := make([]env.AuditMark, len(users))
	for i, user := range users {
		marks[i] = user.mark(b)
	}
	return marks
}
