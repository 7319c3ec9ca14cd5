package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

const (
	// listed is a namespace with an Application that lists ConfigMaps, and no other kind.
	listed = "listed"
	// injections is how many objects are applied in each run, and injectionPace how many per
	// second.
	injections    = 1000
	injectionPace = 200
)

// listConfigMaps creates an Application that every ConfigMap of a namespace belongs to.
func (h *hub) listConfigMaps(b *testing.B) {
	b.Helper()
	h.namespace(b, listed)
	h.create(b, applications, application(listed, "shop", "ConfigMap"))
}

// applyObject applies an object with the label of the Application, and returns the stored object.
func (h *hub) applyObject(ctx context.Context, kind, name, mark string) (*unstructured.Unstructured, error) {
	return h.client.Resource(plurals[kind]).Namespace(listed).Apply(ctx, name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{
			"name": name, "namespace": listed,
			"labels": map[string]any{"app": "shop"}, "annotations": map[string]any{"mark": mark},
		},
	}}, metav1.ApplyOptions{FieldManager: "user", Force: true})
}

// awaitInjection returns when objects of the listed kind are injected, or no longer are.
func (h *hub) awaitInjection(b *testing.B, wanted bool) {
	b.Helper()
	probe := func() bool {
		stored, err := h.applyObject(b.Context(), "ConfigMap", "probe", "probe")
		require.NoError(b, err)
		require.NoError(b, h.client.Resource(configMaps).Namespace(listed).Delete(b.Context(), "probe", metav1.DeleteOptions{}))
		return (stored.GetAnnotations()[v1alpha1.InjectedAnnotation] != "") == wanted
	}
	require.Eventually(b, probe, waitLimit, 50*time.Millisecond)
}

// injectP99 measures how long our handler takes, by its own metric, while 200 objects a second of a
// listed kind are applied.
func injectP99(b *testing.B, s *results) {
	h := startHub(b, false)
	h.listConfigMaps(b)
	address, err := env.FreeAddress()
	require.NoError(b, err)
	process := startWebhook(b, h, "--metrics-bind-address="+address)
	h.awaitInjection(b, true)
	before := readHistogram(b, address)
	for run := 0; b.Loop(); run++ {
		paced(b, injections, injectionPace, func(ctx context.Context, i int) error {
			_, err := h.applyObject(ctx, "ConfigMap", itemName(i), fmt.Sprint("run ", run))
			return err
		})
	}
	took := readHistogram(b, address).since(before)
	require.GreaterOrEqual(b, took.count(), float64(injections), "not every object was looked at")
	s.atMost("", 1000*took.quantile(0.99), "ms", 10)
	s.inform("p50", 1000*took.quantile(0.5), "ms")
	s.inform("objects", took.count(), "objects")
	s.rss(process)
}

// histogram is a Prometheus histogram: counts of values up to each bound, in seconds.
type histogram struct{ bounds, counts []float64 }

var bucketLine = regexp.MustCompile(`(?m)^waybill_injection_duration_seconds_bucket\{le="([^"]+)"\} (\S+)$`)

// readHistogram reads the metric of the handler.
func readHistogram(b *testing.B, address string) histogram {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(b, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	var h histogram
	for _, match := range bucketLine.FindAllSubmatch(text, -1) {
		bound, err := strconv.ParseFloat(string(match[1]), 64)
		require.NoError(b, err)
		count, err := strconv.ParseFloat(string(match[2]), 64)
		require.NoError(b, err)
		h.bounds, h.counts = append(h.bounds, bound), append(h.counts, count)
	}
	require.NotEmpty(b, h.bounds, "the handler has no metric")
	return h
}

// since returns the counts added since before.
func (h histogram) since(before histogram) histogram {
	for i := range h.counts {
		h.counts[i] -= before.counts[i]
	}
	return h
}

func (h histogram) count() float64 { return h.counts[len(h.counts)-1] }

// quantile returns the upper bound of the bucket that the quantile falls into: never less than its
// value.
func (h histogram) quantile(q float64) float64 {
	for i, count := range h.counts {
		if count >= q*h.count() {
			return h.bounds[i]
		}
	}
	return h.bounds[len(h.bounds)-1]
}

// unlistedKind compares how long the API server takes, with and without Waybill, to apply objects
// of a kind that no Application lists, in a namespace where another kind is listed.
func unlistedKind(b *testing.B, s *results) {
	h := startHub(b, false)
	h.listConfigMaps(b)
	var with, without samples
	peak := 0.0
	for b.Loop() {
		without = append(without, h.latencies(b)...)
		process := startWebhook(b, h, "--unregister-on-exit")
		h.awaitInjection(b, true)
		with = append(with, h.latencies(b)...)
		peak = max(peak, process.peak(b))
		ctx, cancel := context.WithTimeout(b.Context(), waitLimit)
		require.NoError(b, process.Stop(ctx))
		cancel()
		h.awaitInjection(b, false)
	}
	s.atMost("", with.median()/without.median(), "x without", noise)
	s.inform("with", 1000*with.median(), "ms")
	s.inform("without", 1000*without.median(), "ms")
	s.atMost("rss", peak, "MiB", maxRSS)
}

// noise is how far apart two medians of the same measurement may be, as a factor.
const noise = 1.1

// latencies applies objects of the unlisted kind, one after the other, and returns how long each
// takes.
func (h *hub) latencies(b *testing.B) samples {
	b.Helper()
	var took samples
	for i := range injections {
		began := time.Now()
		_, err := h.applyObject(b.Context(), "Secret", itemName(i), began.String())
		took.since(began)
		require.NoError(b, err)
	}
	err := h.client.Resource(secrets).Namespace(listed).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=shop"})
	require.NoError(b, err)
	return took
}
