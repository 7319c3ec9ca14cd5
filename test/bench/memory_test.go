package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/observe"
)

const (
	// smallSize and largeSize are how many bytes an object holds besides its metadata.
	smallSize, largeSize = 1 << 10, 100 << 10
	// sizedCount is the number of Applications, and eachKind that of the objects that each has of
	// each of three kinds.
	sizedCount, eachKind = 100, 4
	sizedNamespace       = "sized"
)

// applicationMemory compares the peak memory for 1,200 small objects with that for as many large
// ones: nothing but metadata may stay in memory. Of ConfigMaps and Secrets nothing else is read;
// Reports are read in full, for their health.
func applicationMemory(b *testing.B, s *results) {
	ofSmall, ofLarge := startSized(b, smallSize), startSized(b, largeSize)
	var small, large samples
	for b.Loop() {
		small.add(ofSmall.measure(b))
		large.add(ofLarge.measure(b))
	}
	s.atMost("", large.median()/small.median(), "x small", 1.2)
	s.inform("small", small.median(), "MiB")
	s.inform("large", large.median(), "MiB")
	s.atMost("rss", large.max(), "MiB", maxRSS)
}

// sized is a cluster whose Applications have objects of one size.
type sized struct {
	*hub
	apps *observe.View
}

func startSized(b *testing.B, size int) *sized {
	b.Helper()
	h := &sized{hub: startHub(b, false)}
	require.NoError(b, h.InstallCRDs(b.Context(), benchCRDs))
	h.namespace(b, sizedNamespace)
	bare := newFloor(b, h.RESTConfig(), connections)
	text := strings.Repeat("x", size)
	for i := range sizedCount {
		bare.apply(b, prepare(b, sizedManifests(i, text)))
		h.create(b, applications, application(sizedNamespace, applicationName(i), "ConfigMap", "Secret", "Report.bench.waybill.dev"))
	}
	h.apps = h.view(b, applications, sizedNamespace)
	return h
}

// sizedManifests returns the objects of the i-th Application.
func sizedManifests(i int, text string) []string {
	var manifests []string
	for n := range eachKind {
		head := fmt.Sprintf("metadata: {name: %s, namespace: %s, labels: {app: %s}}\n", sizedName(i, n), sizedNamespace, applicationName(i))
		manifests = append(manifests,
			"apiVersion: v1\nkind: ConfigMap\n"+head+"data: {text: "+text+"}\n",
			"apiVersion: v1\nkind: Secret\n"+head+"stringData: {text: "+text+"}\n",
			"apiVersion: bench.waybill.dev/v1\nkind: Report\n"+head+"spec: {text: "+text+"}\n",
		)
	}
	return manifests
}

func sizedName(i, n int) string { return fmt.Sprintf("%s-%d", applicationName(i), n) }

// measure returns the peak memory of a fresh process that has read the health of every Report when
// it started and after each of two changes.
func (h *sized) measure(b *testing.B) float64 {
	b.Helper()
	process := startAgent(b, h.hub)
	h.setReports(b, "False", 2*eachKind)
	h.setReports(b, "True", 3*eachKind)
	peak := process.peak(b)
	require.NoError(b, process.Kill())
	return peak
}

// setReports sets the condition Ready of all Reports, and waits until every Application shows that
// it has want components that are ready.
func (h *sized) setReports(b *testing.B, status string, want int) {
	b.Helper()
	require.NoError(b, parallel(sizedCount*eachKind, func(i int) error {
		return h.setCondition(b.Context(), sizedNamespace, sizedName(i/eachKind, i%eachKind), status)
	}))
	await(b, h.apps, sizedCount, componentsReady(want, 3*eachKind))
}
