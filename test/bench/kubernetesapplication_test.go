package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/observe"
)

const (
	// placed is the number of KubernetesApplications, and templates that of the templates of each.
	placed    = 500
	templates = 5
	// deadServers is how many clusters hang in the row with dead ones.
	deadServers = 2
	// statusPace is how many statuses change per second, one of each application in a run.
	statusPace = 25
	// placeLimit is how long it may take to create or delete 2,500 objects.
	placeLimit = 6 * time.Minute
)

// placement is a hub that delivers to ten API servers by KubernetesApplications.
type placement struct {
	*hub
	*userClusters
	process waybill
	apps    *observe.View
	objects *observe.View   // the KubernetesApplicationResources
	sets    []*observe.View // ReplicaSets, in each user cluster: these are collected last
}

func startPlacement(b *testing.B) *placement {
	b.Helper()
	p := &placement{userClusters: startUserClusters(b), hub: startHub(b, false)}
	rowNamespace(b, delivered, p.users...)
	p.apps, p.objects = p.view(b, placements, system), p.view(b, placedObjects, system)
	for _, user := range p.users {
		p.sets = append(p.sets, user.view(b, replicaSets, ""))
	}
	p.process = startSync(b, p.hub)
	p.join(b, p.hub, servers)
	return p
}

// anywhere lets the scheduler choose the cluster of each application.
func anywhere(int) map[string]any { return map[string]any{"fleet": "all"} }

// pinned leaves the scheduler no choice.
func pinned(i int) map[string]any { return map[string]any{"name": remoteName(i % servers)} }

// placedManifests returns the objects of an application. The Deployment has no replicas.
func placedManifests(namespace string, i int) []string {
	return append(appManifests(namespace, appName(i), 0), fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {text: %s}\n",
		appName(i), namespace, strings.Repeat("x", 512)))
}

// objectName returns the name of the KubernetesApplicationResource of a kind.
func objectName(i int, kind string) string { return appName(i) + "-" + strings.ToLower(kind) }

func placedApplication(i int, labels map[string]any) (*unstructured.Unstructured, error) {
	spec := selecting(labels)
	var list []any
	for _, manifest := range placedManifests(delivered, i) {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
			return nil, err
		}
		list = append(list, map[string]any{
			"metadata": map[string]any{"name": objectName(i, fmt.Sprint(object["kind"]))},
			"spec":     map[string]any{"template": object},
		})
	}
	spec["resourceTemplates"] = list
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KubernetesApplicationKind,
		"metadata": map[string]any{"name": appName(i), "namespace": system},
		"spec":     spec,
	}}, nil
}

// place creates all applications.
func (p *placement) place(b *testing.B, labels func(int) map[string]any) {
	b.Helper()
	require.NoError(b, parallel(placed, func(i int) error {
		app, err := placedApplication(i, labels(i))
		if err != nil {
			return err
		}
		_, err = p.client.Resource(placements).Namespace(system).Create(b.Context(), app, metav1.CreateOptions{})
		return err
	}))
}

// submitted matches an application all of whose objects are in its cluster.
func submitted(o *observe.Object) bool {
	there, _, _ := unstructured.NestedInt64(o.Object, "status", "submittedResources") // none is not all
	return there == templates && observe.Both(observe.Ready, observe.Has(string(v1alpha1.StateSubmitted), "status", "state"))(o)
}

func (p *placement) await(b *testing.B, want int, match observe.Match) {
	b.Helper()
	awaitFor(b, placeLimit, p.apps, want, match)
}

// clear deletes all applications, and waits until they and everything that they delivered are gone.
func (p *placement) clear(b *testing.B) {
	b.Helper()
	require.NoError(b, parallel(placed, func(i int) error {
		return p.client.Resource(placements).Namespace(system).Delete(b.Context(), appName(i), metav1.DeleteOptions{})
	}))
	p.await(b, 0, observe.Any)
	p.awaitCollected(b)
}

// awaitNoEvents waits until no more events are sent: many may still be waiting, because they are
// rate-limited.
func (p *placement) awaitNoEvents(b *testing.B) {
	b.Helper()
	for deadline := time.Now().Add(placeLimit); ; {
		before := p.mark(b)
		<-time.After(settling)
		if p.requests(b, before).count(of(events)) == 0 {
			return
		}
		require.True(b, time.Now().Before(deadline), "events are still being sent")
	}
}

// awaitCollected waits until no deleted object is left in any user cluster.
func (p *placement) awaitCollected(b *testing.B) {
	b.Helper()
	for _, sets := range p.sets {
		awaitFor(b, placeLimit, sets, 0, observe.Any)
	}
}

// kubernetesApplication500Create measures how long it takes from the first application until all
// report that they are submitted.
func kubernetesApplication500Create(b *testing.B, s *results) {
	p := startPlacement(b)
	bare := p.newBareProgram(b)
	var took, least, calls, writes samples
	for run := 1; b.Loop(); run++ {
		p.awaitNoEvents(b)
		bare.say(b, run)
		least.add(bare.run(b))
		bare.remove(b)
		p.awaitCollected(b)

		before := p.mark(b)
		began := time.Now()
		p.place(b, anywhere)
		p.await(b, placed, submitted)
		took.since(began)
		all := p.requests(b, before)
		calls.add(all.count() / placed / templates)
		writes.add(all.count(statusWrite) / placed / templates)
		p.clear(b)
	}
	s.atMost("", took.median()/least.median(), "x floor", 3)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.inform("requests", calls.median(), "to the hub, each object")
	s.inform("status-writes", writes.median(), "each object")
	s.rss(p.process)
}

// kubernetesApplicationStatus measures how long the status of a Deployment in a user cluster takes,
// from the answer of its API server, until it is on the hub.
func kubernetesApplicationStatus(b *testing.B, s *results) {
	p := startPlacement(b)
	p.place(b, pinned)
	p.await(b, placed, submitted)
	<-time.After(settling)
	var took samples
	for run := 1; b.Loop(); run++ {
		took = append(took, p.changeStatuses(b, fmt.Sprint("run ", run))...)
	}
	s.atMost("", took.percentile(99), "s at p99", 1)
	s.inform("p50", took.median(), "s")
	s.inform("events", float64(len(took)), "events")
	s.rss(p.process)
}

// changeStatuses adds a condition to the status of each Deployment, which the Deployment controller
// leaves alone, and returns how long each takes.
func (p *placement) changeStatuses(b *testing.B, says string) samples {
	b.Helper()
	change := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Bench","status":"True","reason":"Bench","message":%q}]}}`, says)
	took := make(samples, placed)
	paced(b, placed, statusPace, func(ctx context.Context, i int) error {
		_, err := p.user(i).client.Resource(deployments).Namespace(delivered).Patch(ctx, appName(i),
			types.StrategicMergePatchType, change, metav1.PatchOptions{}, "status")
		if err != nil {
			return err
		}
		began := time.Now()
		err = p.objects.Until(ctx, 1, observe.Named(objectName(i, "Deployment"), remoteCondition(says)))
		took[i] = time.Since(began).Seconds()
		return err
	})
	return took
}

// remoteCondition matches an object with a condition of that text in its status in the user cluster.
func remoteCondition(says string) observe.Match {
	return func(o *observe.Object) bool {
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "remote", "conditions") // none does not match
		return slices.ContainsFunc(list, func(item any) bool {
			condition, ok := item.(map[string]any)
			return ok && condition["message"] == says
		})
	}
}

// kubernetesApplication2Dead measures how much longer the applications of eight clusters take while
// the other two hang.
func kubernetesApplication2Dead(b *testing.B, s *results) {
	p := startPlacement(b)
	var healthy, withDead samples
	for b.Loop() {
		healthy.add(p.placeHealthy(b))
		p.await(b, placed, submitted)
		p.clear(b)

		p.hang(b, deadServers)
		withDead.add(p.placeHealthy(b))
		p.open(b)
		p.await(b, placed, submitted)
		p.clear(b)
	}
	s.atMost("", withDead.median()/healthy.median(), "x none dead", 1.1)
	s.inform("none-dead", healthy.median(), "s")
	s.inform("2-dead", withDead.median(), "s")
	s.rss(p.process)
}

// placeHealthy creates all applications, and returns how long those take whose clusters never hang.
func (p *placement) placeHealthy(b *testing.B) float64 {
	b.Helper()
	began := time.Now()
	p.place(b, pinned)
	p.await(b, placed/servers*(servers-deadServers), observe.Both(submitted, func(o *observe.Object) bool {
		name, _, _ := unstructured.NestedString(o.Object, "status", "cluster") // without a name it is not a healthy one
		return name >= remoteName(deadServers)
	}))
	return time.Since(began).Seconds()
}

// kubernetesApplicationIdle measures the requests to the hub and to user clusters when nothing
// changes.
func kubernetesApplicationIdle(b *testing.B, s *results) {
	p := startPlacement(b)
	p.place(b, pinned)
	p.await(b, placed, submitted)
	p.awaitNoEvents(b)
	var here, there samples
	for b.Loop() {
		calls := idleWindow(b, append([]*hub{p.hub}, p.users...)...)
		here, there = append(here, calls[0]), append(there, calls[1:]...)
	}
	s.atMost("", here.max(), "requests", 0)
	s.atMost("user-cluster", there.max(), "requests", 0)
	s.rss(p.process)
}
