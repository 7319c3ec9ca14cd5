package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/test/observe"
)

const (
	// changePace is how many components change per second, and changes how many change, twice, in
	// each run.
	changePace = 100
	changes    = 300
)

// application1000Cold measures how long a fresh process takes until every status is right, if all
// objects are owned already and every status is wrong.
func application1000Cold(b *testing.B, s *results) {
	c := startAppCluster(b)
	var took, calls samples
	peak := 0.0
	for b.Loop() {
		c.spoilStatuses(b)
		before := c.mark(b)
		began := time.Now()
		process := startAgent(b, c.hub)
		c.await(b, applicationCount, allThere)
		took.since(began)
		calls.add(c.requests(b, before).count())
		peak = max(peak, process.peak(b))
		require.NoError(b, process.Kill())
	}
	s.atMost("", took.median(), "s", 30)
	s.inform("requests", calls.median(), "requests")
	s.atMost("rss", peak, "MiB", maxRSS)
}

// applicationChange measures how long it takes until the status of an Application shows that a
// component came or went: ConfigMaps are deleted and recreated.
func applicationChange(b *testing.B, s *results) {
	c := startAppCluster(b)
	c.measureChanges(b, s, disruption{c.deleteComponent, c.recreateComponent, componentCount - 1})
}

// applicationStatusChange measures how long it takes until the status of an Application shows that
// the status of a component changed: the condition Ready of Reports.
func applicationStatusChange(b *testing.B, s *results) {
	c := startAppCluster(b)
	c.measureChanges(b, s, disruption{c.setReady("False"), c.setReady("True"), componentCount})
}

// disruption makes one component of an Application count as not ready, and undoes that.
type disruption struct {
	spoil, restore step
	// left is how many components there are meanwhile: one that is deleted is none any more.
	left int
}

// measureChanges measures 100 changes a second: first those that make a component of each
// Application count as not ready, then those that undo that. The floor is a bare program that knows
// what changes and writes only that: if the API server is slow at this, no controller can be faster.
func (c *appCluster) measureChanges(b *testing.B, s *results, d disruption) {
	b.Helper()
	fewer, all := componentsReady(componentCount-1, d.left), componentsReady(componentCount, componentCount)
	floor := c.change(b, d.spoil, c.writeReady(componentCount-1, d.left), fewer)
	floor = append(floor, c.change(b, d.restore, c.writeReady(componentCount, componentCount), all)...)
	process := c.startSettled(b)
	var took samples
	for b.Loop() {
		took = append(took, c.change(b, d.spoil, nothing, fewer)...)
		took = append(took, c.change(b, d.restore, nothing, all)...)
	}
	least := 1000 * floor.percentile(99)
	s.atMost("", 1000*took.percentile(99), "ms at p99", max(500, 2*least))
	s.inform("floor", least, "ms at p99")
	s.inform("p50", 1000*took.median(), "ms")
	s.inform("changes", float64(len(took)), "changes")
	s.rss(process)
}

// change changes a component of many Applications, at a pace, and returns for each how long it took
// from the answer of the API server until the status of the Application matched. The time includes
// then, which the row itself does after the change.
func (c *appCluster) change(b *testing.B, do, then step, match observe.Match) samples {
	b.Helper()
	took := make(samples, changes)
	paced(b, changes, changePace, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return err
		}
		began := time.Now()
		if err := then(ctx, i); err != nil {
			return err
		}
		err := c.apps.Until(ctx, 1, observe.Named(applicationName(i), match))
		took[i] = time.Since(began).Seconds()
		return err
	})
	return took
}

func nothing(context.Context, int) error { return nil }

// writeReady returns a step that writes a minimal status of the i-th Application.
func (c *appCluster) writeReady(ready, all int) step {
	patch := readyStatus(ready, all)
	return func(ctx context.Context, i int) error {
		_, err := c.client.Resource(applications).Namespace(applicationNamespace(i)).Patch(ctx, applicationName(i), types.MergePatchType,
			patch, metav1.PatchOptions{}, "status")
		return err
	}
}

// readyStatus returns the patch of a minimal status.
func readyStatus(ready, all int) []byte {
	return fmt.Appendf(nil, `{"status":{"componentsReady":"%d/%d"}}`, ready, all)
}

// firstComponent returns the name of an object of each kind that the i-th Application lists.
func firstComponent(i int) string { return applicationName(i) + "-0" }

func (c *appCluster) deleteComponent(ctx context.Context, i int) error {
	return c.client.Resource(configMaps).Namespace(applicationNamespace(i)).Delete(ctx, firstComponent(i), metav1.DeleteOptions{})
}

func (c *appCluster) recreateComponent(ctx context.Context, i int) error {
	_, err := c.client.Resource(configMaps).Namespace(applicationNamespace(i)).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": firstComponent(i), "namespace": applicationNamespace(i), "labels": map[string]any{"app": applicationName(i)},
		},
	}}, metav1.CreateOptions{})
	return err
}

// setReady returns a step that sets the condition Ready of a Report.
func (c *appCluster) setReady(status string) step {
	return func(ctx context.Context, i int) error {
		return c.setCondition(ctx, applicationNamespace(i), firstComponent(i), status)
	}
}

// setCondition sets the condition Ready of a Report.
func (h *hub) setCondition(ctx context.Context, namespace, name, status string) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Bench"}]}}`, status)
	_, err := h.client.Resource(reports).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// applicationIdle measures the requests when nothing changes.
func applicationIdle(b *testing.B, s *results) {
	c := startAppCluster(b)
	process := c.startSettled(b)
	var calls samples
	for b.Loop() {
		calls = append(calls, idleWindow(b, c.hub)...)
	}
	s.atMost("", calls.max(), "requests", 0)
	s.rss(process)
}
