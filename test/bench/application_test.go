package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/observe"
)

const (
	// members is the number of Applications, and memberSpaces that of their namespaces. Each
	// Application has two objects of each of five kinds.
	members      = 1000
	memberSpaces = 20
	parts        = 10
	// pace is how many components change per second, and changes how many in each run.
	pace    = 100
	changes = 300
)

// crowd is 1,000 Applications of 10 components each.
type crowd struct {
	*hub
	apps *observe.View
}

// startCrowd returns with 1,000 Applications whose components are owned already, thanks to a first
// process, which has ended.
func startCrowd(b *testing.B) *crowd {
	b.Helper()
	c := &crowd{hub: startHub(b, false)}
	for i := range memberSpaces {
		c.namespace(b, memberSpace(i))
	}
	c.apps = c.view(b, applications, "")
	var objects []string
	for i := range members {
		objects = append(objects, partManifests(i)...)
	}
	newFloor(b, c.RESTConfig(), connections).apply(b, prepare(b, objects))
	require.NoError(b, parallel(members, func(i int) error {
		app := memberApplication(i)
		_, err := c.client.Resource(applications).Namespace(app.GetNamespace()).Create(b.Context(), app, metav1.CreateOptions{})
		return err
	}))
	first := startAgent(b, c.hub)
	c.await(b, members, allThere)
	require.NoError(b, first.Kill())
	return c
}

// crowdPatience is how long it may take until 10,000 objects are processed.
const crowdPatience = 10 * time.Minute

func (c *crowd) await(b *testing.B, want int, match observe.Match) {
	b.Helper()
	awaitFor(b, crowdPatience, c.apps, want, match)
}

func memberSpace(i int) string { return fmt.Sprintf("team-%02d", i%memberSpaces) }
func memberName(i int) string  { return fmt.Sprintf("app-%04d", i) }

func memberApplication(i int) *unstructured.Unstructured {
	components := []any{map[string]any{"group": "apps", "kind": "Deployment"}}
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "ServiceAccount"} {
		components = append(components, map[string]any{"kind": kind})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": memberName(i), "namespace": memberSpace(i)},
		"spec": map[string]any{
			"type":       "bench",
			"selector":   map[string]any{"matchLabels": map[string]any{"app": memberName(i)}},
			"components": components,
		},
	}}
}

// partManifests returns the objects of an Application. The Deployments have no replicas: they are
// healthy as soon as their controller has seen them.
func partManifests(i int) []string {
	var manifests []string
	for n := range parts / 5 {
		head := fmt.Sprintf("metadata: {name: %s-%d, namespace: %s, labels: {app: %[1]s}}\n", memberName(i), n, memberSpace(i))
		manifests = append(manifests,
			"apiVersion: v1\nkind: ConfigMap\n"+head+"data: {text: "+strings.Repeat("x", 512)+"}\n",
			"apiVersion: v1\nkind: Secret\n"+head+"stringData: {text: "+strings.Repeat("x", 512)+"}\n",
			"apiVersion: v1\nkind: Service\n"+head+"spec: {clusterIP: None, selector: {app: "+memberName(i)+"}}\n",
			"apiVersion: v1\nkind: ServiceAccount\n"+head,
			"apiVersion: apps/v1\nkind: Deployment\n"+head+fmt.Sprintf(`spec:
  replicas: 0
  selector: {matchLabels: {app: %s, part: "%d"}}
  template:
    metadata: {labels: {app: %[1]s, part: "%d"}}
    spec: {containers: [{name: web, image: "nginx:1.29-alpine"}]}
`, memberName(i), n, n))
	}
	return manifests
}

// ready matches an Application with that status.componentsReady.
func ready(components string) observe.Match {
	return observe.Has(components, "status", "componentsReady")
}

// allThere matches an Application all of whose components exist and are owned.
func allThere(o *observe.Object) bool {
	if !ready(fmt.Sprintf("%d/%[1]d", parts))(o) {
		return false
	}
	components, _, _ := unstructured.NestedSlice(o.Object, "status", "components") // none is not all
	for _, c := range components {
		if fields, ok := c.(map[string]any); !ok || fields["owned"] != true {
			return false
		}
	}
	return len(components) == parts
}

// application1000Cold measures how long a fresh process takes until every status is right, if all
// objects are owned already and every status is wrong.
func application1000Cold(b *testing.B, s *sheet) {
	c := startCrowd(b)
	var took, calls samples
	peak := 0.0
	for b.Loop() {
		require.NoError(b, parallel(members, func(i int) error {
			_, err := c.client.Resource(applications).Namespace(memberSpace(i)).Patch(b.Context(), memberName(i), types.MergePatchType,
				[]byte(`{"status":{"componentsReady":"","components":null,"installed":null}}`), metav1.PatchOptions{}, "status")
			return err
		}))
		c.await(b, 0, allThere)
		before := c.mark(b)
		began := time.Now()
		process := startAgent(b, c.hub)
		c.await(b, members, allThere)
		took.since(began)
		calls.add(c.requests(b, before).count())
		peak = max(peak, process.peak(b))
		require.NoError(b, process.Kill())
	}
	s.atMost("", took.median(), "s", 30)
	s.inform("requests", calls.median(), "requests")
	s.atMost("rss", peak, "MiB", maxRSS)
}

// applicationChange measures how long a change of a component takes to show in the status of its
// Application, with 100 such changes a second: ConfigMaps are deleted and recreated. The floor is a
// bare program that knows what changes and writes only that: if the API server is slow at this,
// nobody can be faster.
func applicationChange(b *testing.B, s *sheet) {
	c := startCrowd(b)
	fewer, all := fmt.Sprintf("%d/%[1]d", parts-1), fmt.Sprintf("%d/%[1]d", parts)
	floor := append(c.change(b, c.delete, c.write(fewer), fewer), c.change(b, c.bring, c.write(all), all)...)
	process := startAgent(b, c.hub)
	c.await(b, members, allThere)
	<-time.After(settling)
	var took samples
	for b.Loop() {
		took = append(took, c.change(b, c.delete, nothing, fewer)...)
		took = append(took, c.change(b, c.bring, nothing, all)...)
	}
	least := 1000 * floor.percentile(99)
	s.atMost("", 1000*took.percentile(99), "ms at p99", max(500, 2*least))
	s.inform("floor", least, "ms at p99")
	s.inform("p50", 1000*took.median(), "ms")
	s.inform("changes", float64(len(took)), "changes")
	s.rss(process)
}

// step is an action on the i-th Application or its components.
type step func(ctx context.Context, i int) error

func nothing(context.Context, int) error { return nil }

// write returns a step that writes a minimal status.
func (c *crowd) write(components string) step {
	patch := []byte(`{"status":{"componentsReady":"` + components + `"}}`)
	return func(ctx context.Context, i int) error {
		_, err := c.client.Resource(applications).Namespace(memberSpace(i)).Patch(ctx, memberName(i), types.MergePatchType,
			patch, metav1.PatchOptions{}, "status")
		return err
	}
}

func (c *crowd) delete(ctx context.Context, i int) error {
	return c.client.Resource(configMaps).Namespace(memberSpace(i)).Delete(ctx, memberName(i)+"-0", metav1.DeleteOptions{})
}

func (c *crowd) bring(ctx context.Context, i int) error {
	_, err := c.client.Resource(configMaps).Namespace(memberSpace(i)).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": memberName(i) + "-0", "namespace": memberSpace(i), "labels": map[string]any{"app": memberName(i)}},
	}}, metav1.CreateOptions{})
	return err
}

// change changes a component of many Applications, at a pace, and returns for each how long it took
// from the answer of the API server until the status showed it. The time includes then, which the
// row itself does after the change.
func (c *crowd) change(b *testing.B, do, then step, want string) samples {
	b.Helper()
	took := make(samples, changes)
	paced(b, changes, pace, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return err
		}
		began := time.Now()
		if err := then(ctx, i); err != nil {
			return err
		}
		err := c.apps.Until(ctx, 1, observe.Named(memberName(i), ready(want)))
		took[i] = time.Since(began).Seconds()
		return err
	})
	return took
}

// paced calls do for 0 to n-1 at a rate of perSecond, however long each call takes.
func paced(b *testing.B, n, perSecond int, do step) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	var group errgroup.Group
	for i := range n {
		<-ticker.C
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(b, group.Wait())
}

// applicationIdle measures the requests when nothing changes.
func applicationIdle(b *testing.B, s *sheet) {
	c := startCrowd(b)
	process := startAgent(b, c.hub)
	c.await(b, members, allThere)
	<-time.After(settling)
	var calls samples
	for b.Loop() {
		before := c.mark(b)
		<-time.After(window)
		calls.add(c.requests(b, before).count())
	}
	s.atMost("", calls.max(), "requests", 0)
	s.rss(process)
}
