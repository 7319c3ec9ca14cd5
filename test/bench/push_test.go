package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// twoClusters is a hub with two user clusters, each with its own API server.
type twoClusters struct {
	*hub
	source
	process waybill
	syncs   *observe.View
	users   []*hub
}

const twoClusterSync = "two-clusters" // the GitSync

// startTwoClusters returns with a GitSync that delivers an empty namespace to both clusters.
func startTwoClusters(b *testing.B, spec map[string]any) *twoClusters {
	b.Helper()
	p := &twoClusters{hub: startHub(b, false)}
	p.source = startSource(b, p.hub)
	p.syncs = p.view(b, gitSyncs, system)
	p.process = startSync(b, p.hub)
	for _, name := range []string{"berlin", "dublin"} {
		user := startCluster(b, env.Options{Name: name})
		config, err := user.AddUser(syncUser, "system:masters")
		require.NoError(b, err)
		kubeconfig, err := env.Kubeconfig(name, config)
		require.NoError(b, err)
		p.register(b, name, kubeconfig, map[string]any{"fleet": "all"})
		p.users = append(p.users, user)
	}
	await(b, p.view(b, clusters, system), len(p.users), observe.Ready)
	p.defineApplication(b, "fifty")
	whole := selecting(map[string]any{"fleet": "all"})
	for key, value := range spec {
		whole[key] = value
	}
	commit, _ := p.push(b, twoClusterSync, twoClusterFiles(nil))
	p.create(b, gitSyncs, gitSync(twoClusterSync, twoClusterSync, p.source, whole))
	await(b, p.syncs, 1, readyAt(commit))
	return p
}

// twoClusterFiles adds the namespace, which always exists.
func twoClusterFiles(files map[string]string) map[string]string {
	all := map[string]string{"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + delivered + "\n"}
	for name, content := range files {
		all[name] = content
	}
	return all
}

// expected is how many objects of one kind an application has in one cluster.
type expected struct {
	view *observe.View
	want int
}

// expect opens views of an application's objects in both clusters, given the number of objects of
// each kind.
func (p *twoClusters) expect(b *testing.B, counts map[schema.GroupVersionResource]int) []expected {
	b.Helper()
	var all []expected
	for _, user := range p.users {
		for gvr, want := range counts {
			all = append(all, expected{user.view(b, gvr, delivered), want})
		}
	}
	return all
}

// timePush pushes, and returns how long it takes until both clusters hold all matching objects;
// with nil files, until none is left.
func (p *twoClusters) timePush(b *testing.B, files map[string]string, objects []expected, match observe.Match) float64 {
	b.Helper()
	commit, at := p.push(b, twoClusterSync, twoClusterFiles(files))
	p.reconcile(b, gitSyncs, system, twoClusterSync)
	for _, e := range objects {
		want := e.want
		if files == nil {
			want = 0
		}
		await(b, e.view, want, match)
	}
	took := time.Since(at).Seconds()
	await(b, p.syncs, 1, readyAt(commit))
	return took
}

// pushToTwoClusters measures how long it takes from a push until two clusters hold 50 objects: those
// of an installation, and plain ones.
func pushToTwoClusters(b *testing.B, s *results) {
	p := startTwoClusters(b, nil)
	charted := p.expect(b, map[schema.GroupVersionResource]int{configMaps: 20, accounts: 10, services: 10, deployments: 10})
	plain := p.expect(b, map[schema.GroupVersionResource]int{configMaps: 50})
	var byChart, byFiles samples
	for run := 1; b.Loop(); run++ {
		name := fmt.Sprintf("app-%d", run)
		wanted, err := yaml.Marshal(installation(delivered, name, nil).Object)
		require.NoError(b, err)
		ofRelease := observe.Has(name, "metadata", "labels", "app.kubernetes.io/instance")
		byChart.add(p.timePush(b, map[string]string{"installation.yaml": string(wanted)}, charted, ofRelease))
		p.timePush(b, nil, charted, ofRelease)

		byFiles.add(p.timePush(b, configMapFiles(delivered, 50, name), plain, marked(name)))
		p.timePush(b, nil, plain, marked(name))
	}
	s.atMost("", byChart.median(), "s", 2)
	s.atMost("plain", byFiles.median(), "s", 2)
	s.rss(p.process)
}
