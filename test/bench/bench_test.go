package bench

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"waybill.dev/waybill/test/env"
)

// row is a measurement with one or more figures.
type row struct {
	name    string
	measure func(*testing.B, *results)
}

// group is rows that are measured one after the other and may share clusters.
type group struct {
	rows []row
	// end stops what the rows share; nil if that is nothing, or if nothing comes after it.
	end func()
}

// groups are measured in this order.
var groups = []group{
	{rows: []row{
		{"gitsync-1000-create", gitSync1000Create},
		{"gitsync-1000-one", gitSync1000One},
		{"gitsync-1000-noop", gitSync1000Noop},
		{"drift-back", driftBack},
		{"gitsync-200x4-create", gitSync200Create},
		{"gitsync-200x4-push", gitSync200Push},
		{"helm-100-install", helm100Install},
		{"helm-100-upgrade", helm100Upgrade},
		{"helm-100-noop", helm100Noop},
		{"helm-100-restart", helm100Restart},
		{"push-to-two-clusters", pushToTwoClusters},
		{"idle-requests", idleRequests},
		{"webhook-p99", webhookP99},
		{"inject-p99", injectP99},
		{"injection-rules", injectionRules},
		{"unlisted-kind", unlistedKind},
		{"application-memory", applicationMemory},
		{"installations-300-cold", installations300Cold},
		{"inventory-1000", inventory1000},
		{"snapshots-100x3", snapshots100},
		{"snapshots-500-idle", snapshots500Idle},
	}},
	// These share a cluster with 10,000 objects.
	{end: stopAppCluster, rows: []row{
		{"application-1000-adopt", application1000Adopt},
		{"application-1000-cold", application1000Cold},
		{"application-change", applicationChange},
		{"application-status-change", applicationStatusChange},
		{"application-idle", applicationIdle},
	}},
	// These share a hub with 1,000 clusters.
	{end: stopFleet, rows: []row{
		{"dashboard-first-page", dashboardFirstPage},
		{"dashboard-change", dashboardChange},
		{"dashboard-idle", dashboardIdle},
	}},
	// These share ten more API servers, which would slow down the others.
	{rows: []row{
		{"remote-20-dead", remote20Dead},
		{"dead-one-of-ten", deadOneOfTen},
		{"kubernetesapplication-500-create", kubernetesApplication500Create},
		{"kubernetesapplication-status", kubernetesApplicationStatus},
		{"kubernetesapplication-2-dead", kubernetesApplication2Dead},
		{"kubernetesapplication-idle", kubernetesApplicationIdle},
		{"catalog-50-upgrade", catalog50Upgrade},
	}},
}

// figures collects the figures of all rows.
var figures table

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // the table shows the results
	log.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second Ctrl-C ends us at once
		env.StopAll()
		os.Exit(1)
	}()
	code := m.Run()
	env.StopAll()
	if text, ok := figures.print(); text != "" {
		fmt.Print("\n" + text)
		if !ok {
			code = 1
		}
	}
	os.Exit(code)
}

func BenchmarkWaybill(b *testing.B) {
	for _, g := range groups {
		for _, r := range g.rows {
			b.Run(r.name, r.run)
		}
		if g.end != nil {
			g.end()
		}
	}
}

func (r row) run(b *testing.B) {
	s := &results{row: r.name, b: b}
	defer func() {
		b.ReportMetric(0, "ns/op") // meaningless here, and omitted if zero
		figures.add(s.lines()...)
	}()
	r.measure(b, s)
}
