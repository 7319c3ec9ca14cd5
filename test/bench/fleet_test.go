package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// perServer is how many installations of the definition each of the ten clusters has: together 50,
	// because a machine with two cores cannot run 50 API servers.
	perServer = 5
	// fleetRSS is the maximum peak memory of the hub's process in MiB, with so many clusters.
	fleetRSS = 300
	// fleetCatalog and fleetApps are the GitSyncs for the hub and for the clusters, and their folders.
	fleetCatalog, fleetApps = "catalog", "apps"
	// fleetChart is the chart with 50 objects, each of which differs between its versions.
	fleetChart = "fifty"
)

// fleet is a definition in a git repository, with 50 installations in ten clusters.
type fleet struct {
	*hub
	*userClusters
	source
	process waybill
	charts  *env.HelmRepo
	syncs   *observe.View
	wanted  []*observe.View // the installations, by API server
	bare    []*floor        // by API server
}

func startFleet(b *testing.B) *fleet {
	b.Helper()
	f := &fleet{userClusters: startUserClusters(b), hub: startHub(b, false)}
	for i := range perServer {
		rowNamespace(b, ownNamespace(i), f.users...)
		rowNamespace(b, floorNamespace(i), f.users...)
	}
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(b, err)
	b.Cleanup(charts.Stop)
	f.charts, f.source = charts, startSource(b, f.hub)
	f.syncs = f.view(b, gitSyncs, system)
	f.process = startSync(b, f.hub)
	f.join(b, f.hub, servers)
	for _, user := range f.users {
		f.wanted = append(f.wanted, user.view(b, installations, ""))
		f.bare = append(f.bare, newFloor(b, user.RESTConfig(), connections/servers))
	}
	f.publish(b, 0)
	f.create(b, gitSyncs, gitSync(fleetCatalog, "fleet/"+fleetCatalog, f.source, nil))
	f.create(b, gitSyncs, gitSync(fleetApps, "fleet/"+fleetApps, f.source, selecting(map[string]any{"fleet": "all"})))
	f.awaitVersion(b, 0)
	return f
}

func fleetVersion(run int) string { return fmt.Sprintf("1.%d.0", run) }

// versioned returns the chart of a run.
func versioned(b *testing.B, run int) *chart.Chart {
	b.Helper()
	c, err := loader.Load("testdata/" + fleetChart)
	require.NoError(b, err)
	c.Metadata.Version = fleetVersion(run)
	return c
}

// publish pushes the chart of a run, and then a commit that adds it to the definition and has every
// installation use it. It returns when the commit was pushed.
func (f *fleet) publish(b *testing.B, run int) time.Time {
	b.Helper()
	_, err := f.charts.Push("testdata/"+fleetChart, func(c *chart.Chart) { c.Metadata.Version = fleetVersion(run) })
	require.NoError(b, err)
	versions := make([]string, 0, run+1)
	for i := range run + 1 {
		versions = append(versions, fleetVersion(i))
	}
	files := map[string]string{fleetCatalog + "/definition.yaml": asYAML(b, definitionOf(f.charts.URL(), fleetChart, versions...))}
	for i := range perServer {
		inst := installation(ownNamespace(i), definition, nil)
		require.NoError(b, unstructured.SetNestedField(inst.Object, fleetVersion(run), "spec", "applicationRef", "version"))
		files[fmt.Sprintf("%s/%d.yaml", fleetApps, i)] = asYAML(b, inst)
	}
	_, at := f.push(b, "fleet", files)
	return at
}

func asYAML(b *testing.B, o *unstructured.Unstructured) string {
	b.Helper()
	text, err := yaml.Marshal(o.Object)
	require.NoError(b, err)
	return string(text)
}

// awaitVersion waits until all installations are Ready with the version of a run.
func (f *fleet) awaitVersion(b *testing.B, run int) {
	b.Helper()
	for _, view := range f.wanted {
		await(b, view, perServer, observe.Both(observe.Ready, observe.Has(fleetVersion(run), "status", "application", "version")))
	}
}

// bareFleet prepares the patches of the bare program for each API server.
func bareFleet(b *testing.B, run int) []patch {
	b.Helper()
	var manifests []string
	for i := range perServer {
		manifests = append(manifests, bareReleaseOf(b, versioned(b, run), floorNamespace(i), run)...)
	}
	return prepare(b, manifests)
}

// floorOf returns how long the bare program takes to apply the objects of a run to all clusters.
func (f *fleet) floorOf(b *testing.B, run int) float64 {
	b.Helper()
	patches := bareFleet(b, run)
	began := time.Now()
	var group errgroup.Group
	for _, bare := range f.bare {
		group.Go(func() error { return bare.sendAll(patches, bare.applying) })
	}
	require.NoError(b, group.Wait())
	return time.Since(began).Seconds()
}

// downloads returns how many archives of the chart were fetched since a number of requests.
func (f *fleet) downloads(since int) float64 {
	n := 0
	for _, r := range f.charts.Requests()[since:] {
		if strings.HasSuffix(r.Path, ".tgz") {
			n++
		}
	}
	return float64(n)
}

// catalog50Upgrade measures how long it takes from a push of one new version of a definition until 50
// installations in ten clusters are upgraded and Ready. The floor writes the same objects, and a
// Secret for each release, to the same clusters.
func catalog50Upgrade(b *testing.B, s *results) {
	f := startFleet(b)
	f.floorOf(b, 0)
	var took, least, fetched, calls samples
	for run := 1; b.Loop(); run++ {
		least.add(f.floorOf(b, run))

		seen := len(f.charts.Requests())
		marks := make([]env.AuditMark, servers)
		for i, user := range f.users {
			marks[i] = user.mark(b)
		}
		at := f.publish(b, run)
		f.reconcile(b, gitSyncs, system, fleetCatalog)
		f.reconcile(b, gitSyncs, system, fleetApps)
		f.awaitVersion(b, run)
		took.since(at)
		fetched.add(f.downloads(seen))
		all := 0.0
		for i, user := range f.users {
			all += user.requests(b, marks[i]).count()
		}
		calls.add(all / (servers * perServer))
	}
	s.atMost("", took.median()/least.median(), "x floor", 1.5)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.atMost("downloads", fetched.max(), "of the chart", 1)
	s.inform("requests", calls.median(), "each")
	s.atMost("rss", f.process.peak(b), "MiB", fleetRSS)

	// What the process would uninstall keeps the namespaces from ending.
	f.clear(b, gitSyncs, system, f.syncs)
	for _, view := range f.wanted {
		await(b, view, 0, observe.Any)
	}
}
