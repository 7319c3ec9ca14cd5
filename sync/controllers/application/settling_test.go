package application

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/reconcile"
)

// configMaps is an API server that has nothing but these.
type configMaps struct{ client metadata.Interface }

func (c configMaps) Metadata() metadata.Interface { return c.client }
func (configMaps) Dynamic() dynamic.Interface     { return nil }
func (configMaps) Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

func newConfigMaps(t *testing.T, objects ...metav1.ObjectMeta) configMaps {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	var list []runtime.Object
	for _, o := range objects {
		list = append(list, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: o,
		})
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, list...)
	var asked atomic.Bool
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
		return asked.CompareAndSwap(false, true), nil, errors.New("it cannot list by a watch")
	})
	return configMaps{client}
}

// While our own write of an object is under way, and only for a moment, nothing is said of it: a
// status in between would say that the Application is not ready. What waits for that write only to
// leave the Application never speaks against it.
func TestRun_waitsForOwnWrites(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	object := func(name, app string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: shopKey.Namespace, Name: name, ResourceVersion: "1",
			Annotations: map[string]string{v1alpha1.ApplicationAnnotation: app}, OwnerReferences: owners,
		}
	}
	ours := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: "shop", UID: "uid"}
	for name, tc := range map[string]struct {
		object metav1.ObjectMeta
		// change changes the last status.
		change func(*v1alpha1.ApplicationStatus)
		held   bool
		// ready, and outcome or failure, are what is written in the end.
		ready   string
		outcome reconcile.Outcome
		failure string
	}{
		"owned already": {object: object("more", "shop", ours), ready: "2/2", outcome: reconcile.Outcome{Message: "all components are healthy"}},
		"to be owned": {object: object("more", "shop"), held: true, ready: "2/2", outcome: reconcile.Outcome{
			Unknown: v1alpha1.ProgressingReason, Message: "1 component is waiting for an ownerReference",
		}},
		"no component any more": {
			object: object("more", "", ours), held: true, ready: "1/2", failure: "is no longer a component: its ownerReference is being removed",
		},
		"a new spec": {
			object: object("more", "", ours), change: func(s *v1alpha1.ApplicationStatus) { s.ObservedGeneration-- },
			ready: "1/1", outcome: reconcile.Outcome{Message: "all components are healthy"},
		},
		"a kind that the status does not name": {
			object: object("more", "", ours), change: func(s *v1alpha1.ApplicationStatus) { s.Components = nil },
			ready: "1/1", outcome: reconcile.Outcome{Message: "all components are healthy"},
		},
		"another readiness": {
			object: object("more", "", ours), change: func(s *v1alpha1.ApplicationStatus) { s.Ready = metav1.ConditionTrue },
			ready: "1/1", outcome: reconcile.Outcome{Message: "all components are healthy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{owners: ownership.NewOwners(), index: newIndex()}
			cluster := newConfigMaps(t, object("one", "shop", ours), tc.object)
			r.keeper = ownership.New(ownership.Options{}) // it never runs, so every write is under way for ever
			synctest.Test(t, func(t *testing.T) {
				woken := 0
				r.throttle = newThrottle(func(types.NamespacedName) { woken++ })
				r.pods = newPods(t.Context(), nil, r.throttle.soon, r.throttle.soon)
				r.pods.feed, r.pods.seen = &watch.Feed[*pod]{}, true
				r.tracker = tracker.New(t.Context(), cluster, tracker.Options{
					Annotations: []string{v1alpha1.ApplicationAnnotation}, Index: found,
				})
				r.tracker.Want(shopKey, sets.New(kind))
				synctest.Wait()
				require.Equal(t, tracker.Watched, r.tracker.State(kind).Phase)

				pass := func() (*scope, reconcile.Outcome, error) {
					s, _ := surveyed(t)
					s.app.Generation, s.app.Finalizers = 2, []string{v1alpha1.OwnershipFinalizer}
					s.app.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "ConfigMap"}}
					s.app.Status.ObservedGeneration, s.app.Status.Ready = 2, metav1.ConditionUnknown
					s.app.Status.Components = []v1alpha1.ComponentStatus{{Kind: "ConfigMap", Name: "one", Installed: true, Owned: true, Health: string(health.Current)}}
					if tc.change != nil {
						tc.change(&s.app.Status)
					}
					s.entry = prepare(s.app, nil)
					r.owners.Set(s.entry.member)
					before := s.app.Status.DeepCopy()
					outcome, err := r.run(t.Context(), s)
					if outcome.Pending {
						assert.Equal(t, *before, s.app.Status)
					}
					return s, outcome, err
				}
				s, outcome, err := pass()
				require.Equal(t, tc.held, outcome.Pending)
				if tc.held {
					assert.False(t, r.owners.Record(s.app.UID, sets.New(kind)), "what is waited for may need it")
					<-time.After(patience + gather)
					synctest.Wait()
					assert.Equal(t, 1, woken)
					s, outcome, err = pass()
				}
				if tc.failure == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, tc.failure, "what has not left in time counts")
				}
				assert.Equal(t, tc.outcome, outcome)
				assert.Equal(t, tc.ready, s.app.Status.ComponentsReady)
				assert.Len(t, s.app.Status.Components, 2, "it is shown all the same")
			})
		})
	}
}
