package kubernetesapplication

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
)

// shards are processes of one hub, each of which serves the clusters of one shard. None of their
// clusters is connected; no process serves oslo, which has no labels.
type shards struct {
	t         *testing.T
	hub       client.Client
	processes map[string]*Reconciler
	// written are the messages of all status writes.
	written []string
}

// inShards runs a test with shards, in which time passes at once.
func inShards(t *testing.T, test func(*shards)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shards{t: t, processes: map[string]*Reconciler{}}
		s.hub = newReconciler(t, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				err := c.SubResource(sub).Patch(ctx, o, patch, opts...)
				s.written = append(s.written, conditions.GetMessage(o.(*v1alpha1.KubernetesApplication), v1alpha1.ReadyCondition))
				return err
			},
		}).Client
		test(s)
	})
}

// start starts the process that serves a shard, anew if there is one.
func (s *shards) start(shard string) {
	s.t.Helper()
	r := newReconciler(s.t, interceptor.Funcs{})
	r.Client, r.Direct, r.Recorder = s.hub, s.hub, events.NewFakeRecorder(64)
	r.filters = placement.DefaultFilters()
	r.ClusterSelector = labels.SelectorFromSet(labels.Set{"shard": shard})
	now := time.Now()
	r.started = func() time.Time { return now }
	s.processes[shard] = r
}

// settle has all processes look at the application, as after an event, and again when they want to,
// for a minute.
func (s *shards) settle() *v1alpha1.KubernetesApplication {
	s.t.Helper()
	end := time.Now().Add(time.Minute)
	due := map[*Reconciler]time.Time{}
	for _, r := range s.processes {
		due[r] = time.Now()
	}
	for ; time.Now().Before(end); <-time.After(time.Second / 2) {
		for r, at := range due {
			if at.After(time.Now()) {
				continue
			}
			delete(due, r)
			result, err := r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: web})
			require.NoError(s.t, err)
			if result.RequeueAfter > 0 {
				due[r] = time.Now().Add(result.RequeueAfter)
			}
		}
	}
	return s.app()
}

// said settles, and returns what the application says then.
func (s *shards) said() (reason, message string) {
	s.t.Helper()
	app := s.settle()
	assert.Equal(s.t, app.Generation, app.Status.ObservedGeneration)
	return conditions.GetReason(app, v1alpha1.ReadyCondition), conditions.GetMessage(app, v1alpha1.ReadyCondition)
}

func (s *shards) app() *v1alpha1.KubernetesApplication {
	s.t.Helper()
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(s.t, s.hub.Get(s.t.Context(), web, app))
	return app
}

func (s *shards) edit(change func(*v1alpha1.KubernetesApplication)) {
	s.t.Helper()
	app := s.app()
	change(app)
	require.NoError(s.t, s.hub.Update(s.t.Context(), app))
}

// label creates a cluster with that label, or gives it to one that there is.
func (s *shards) label(cluster, key, value string) {
	s.t.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: cluster}}
	_, err := ctrl.CreateOrUpdate(s.t.Context(), s.hub, kc, func() error {
		kc.Labels = labels.Merge(kc.Labels, labels.Set{key: value})
		return nil
	})
	require.NoError(s.t, err)
}

func unserved(clusters string) string {
	return "no waybill-sync seems to serve the clusters that the selector matches (" + clusters +
		"): start one whose --cluster-selector matches their labels, or correct their labels"
}

// W36: an application that only clusters match that no process serves says which those are, and what to
// do; it is kept up to date, whichever process wrote it.
func TestMisfit_whereNobodyServesTheClusters(t *testing.T) {
	inShards(t, func(s *shards) {
		s.start("one")
		s.start("two")
		s.label("bergen", "shard", "one")
		s.label("bergen", "region", "south")
		s.edit(func(app *v1alpha1.KubernetesApplication) {
			app.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "region", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"south"}},
			}}
			app.CreationTimestamp = metav1.Now()
		})
		reason, message := s.said()
		assert.Equal(t, v1alpha1.ClusterNotServedReason, reason)
		assert.Equal(t, unserved("oslo"), message)
		app := s.app()
		assert.Equal(t, v1alpha1.StatePending, app.Status.State)
		assert.Equal(t, message, conditions.GetMessage(app, v1alpha1.ScheduledCondition))

		s.edit(func(app *v1alpha1.KubernetesApplication) { app.Generation++ })
		s.said() // asserts that the generation is observed
		s.edit(func(app *v1alpha1.KubernetesApplication) {
			app.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "noon"}
		})
		assert.Equal(t, "noon", s.settle().Status.LastHandledReconcileAt)

		s.label("narvik", "shard", "thre") // misspelt
		_, message = s.said()
		assert.Equal(t, unserved("narvik, oslo"), message)
		s.start("one") // anew: it does not know what it wrote
		s.start("two")
		s.label("narvik", "region", "south")
		_, message = s.said()
		assert.Equal(t, unserved("oslo"), message)

		s.start("three")
		s.label("narvik", "shard", "three")
		s.label("narvik", "region", "north")
		reason, message = s.said()
		assert.Equal(t, v1alpha1.NoClusterFitsReason, reason)
		assert.Contains(t, message, "cluster narvik: ")
	})
}

// What was said of a cluster does not stay when no process serves the clusters any more that match.
func TestMisfit_whereTheMatchingClusterIsNobodysNow(t *testing.T) {
	move := func(s *shards) {
		s.label("berlin", "region", "south")
		s.label("oslo", "region", "north")
	}
	for reason, tc := range map[string]struct {
		change func(*shards)
		want   string
	}{
		"another one matches, to whoever said it": {move, "oslo"},
		"another one matches, after a restart":    {func(s *shards) { s.start("one"); move(s) }, "oslo"},
		"it matches, and is served no more":       {func(s *shards) { s.label("berlin", "shard", "misspelt") }, "berlin"},
	} {
		t.Run(reason, func(t *testing.T) {
			inShards(t, func(s *shards) {
				s.start("one")
				s.label("berlin", "shard", "one")
				s.label("berlin", "region", "north")
				s.edit(func(app *v1alpha1.KubernetesApplication) {
					app.Spec.ClusterSelector.MatchLabels = map[string]string{"region": "north"}
				})
				_, message := s.said()
				require.Contains(s.t, message, "cluster berlin: ")
				tc.change(s)
				_, message = s.said()
				assert.Equal(s.t, unserved(tc.want), message)
				assert.Empty(s.t, s.app().Status.ConsideredCluster, "this says nothing of a cluster's fitness")
			})
		})
	}
}

// Of an application that was made while no process ran, the first to start says nothing before the
// others had time to place it.
func TestMisfit_waitsForProcessesThatStartLater(t *testing.T) {
	inShards(t, func(s *shards) {
		s.label("bergen", "shard", "one")
		bergen := &v1alpha1.KubernetesCluster{}
		require.NoError(s.t, s.hub.Get(s.t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: "bergen"}, bergen))
		bergen.Spec.Paused = true
		require.NoError(s.t, s.hub.Update(s.t.Context(), bergen))
		s.label("rome", "shard", "two")
		s.start("one") // serves the first that matches
		result, err := s.processes["one"].Reconcile(s.t.Context(), ctrl.Request{NamespacedName: web})
		require.NoError(s.t, err)
		assert.Equal(t, warmUp, result.RequeueAfter)
		assert.Empty(t, s.written)

		<-time.After(warmUp / 2)
		s.start("two")
		two := s.processes["two"]
		two.started = func() time.Time { return time.Time{} } // it has contacted its clusters
		two.filters = nil                                     // and rome fits
		placed := s.settle()
		assert.Equal(t, "rome", placed.Spec.ClusterName)
		assert.Empty(t, placed.Status.ConsideredCluster)
		for _, message := range s.written {
			assert.NotContains(t, message, "bergen")
		}
	})
}

// Processes whose clusters all match, and one that has none of them, do not write over each other:
// one of them reports, and another one only when that one is silent.
func TestMisfit_isReportedByOneProcess(t *testing.T) {
	inShards(t, func(s *shards) {
		for shard, cluster := range map[string]string{"one": "bergen", "two": "rome", "three": "turin", "four": ""} {
			s.start(shard)
			if cluster != "" {
				s.label(cluster, "shard", shard)
			}
		}
		_, first := s.said()
		assert.Contains(t, first, "cluster bergen: ")
		assert.Contains(t, first, "; not served by this waybill-sync, and chosen by no other: oslo, rome, turin")
		require.Equal(t, []string{first}, s.written)
		assert.Equal(t, "bergen", s.app().Status.ConsideredCluster)
		for range 10 {
			s.settle()
		}
		assert.Equal(t, []string{first}, s.written, "nothing has changed")
		for i := range 10 {
			s.edit(func(app *v1alpha1.KubernetesApplication) { app.Generation++ })
			s.said()
			assert.Len(t, s.written, i+2, "one write for each edit")
		}
		assert.Equal(t, first, s.written[10])

		one := s.processes["one"]
		delete(s.processes, "one") // it is down
		s.edit(func(app *v1alpha1.KubernetesApplication) { app.Generation++ })
		_, second := s.said()
		assert.Contains(t, second, "cluster ")
		assert.NotContains(t, second, "cluster bergen: ")
		s.processes["one"] = one
		_, message := s.said()
		assert.Equal(t, first, message)
		before := len(s.written)
		for range 10 {
			s.settle()
		}
		assert.Len(t, s.written, before, "nothing has changed")
	})
}

// Where the selector matches no cluster, all processes say the same, and at once.
func TestMisfit_whereNoClusterMatches(t *testing.T) {
	inShards(t, func(s *shards) {
		s.start("one")
		s.start("two")
		for i := range 3 {
			s.label(fmt.Sprintf("bergen-%d", i), "shard", "one")
		}
		s.edit(func(app *v1alpha1.KubernetesApplication) {
			app.Spec.ClusterSelector.MatchLabels = map[string]string{"region": "north"}
		})
		_, message := s.said()
		assert.Equal(t, "none of 4 clusters has labels that match the selector", message)
		s.edit(func(app *v1alpha1.KubernetesApplication) { app.Generation++ })
		s.said()
		for _, written := range s.written {
			assert.Equal(t, message, written)
		}
	})
}

// Of an application that is placed, or gone, no report is kept.
func TestMisfit_forgets(t *testing.T) {
	for reason, end := range map[string]func(*shards){
		"placed": func(s *shards) {
			s.edit(func(app *v1alpha1.KubernetesApplication) { app.Spec.ClusterName = "oslo" })
		},
		"gone": func(s *shards) { require.NoError(s.t, s.hub.Delete(s.t.Context(), s.app())) },
	} {
		t.Run(reason, func(t *testing.T) {
			inShards(t, func(s *shards) {
				s.start("one")
				s.settle()
				r := s.processes["one"]
				require.Len(t, r.reports.of.All(), 1)
				end(s)
				_, err := r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: web})
				require.NoError(t, err)
				assert.Empty(t, r.reports.of.All())
			})
		})
	}
}
