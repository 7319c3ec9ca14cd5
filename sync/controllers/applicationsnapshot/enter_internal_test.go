package applicationsnapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
)

// readerFunc is a client that gets objects by a function.
type readerFunc struct {
	client.Reader
	get func(client.Object) error
}

func (r readerFunc) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return r.get(o)
}

// S87: a cache that is behind makes no snapshot hold an application for good, and lets no two in at once.
func TestEnter_whereTheCacheSaysThatAnotherIsQuiesced(t *testing.T) {
	at := func(name string, phase v1alpha1.SnapshotPhase) *v1alpha1.ApplicationSnapshot {
		return &v1alpha1.ApplicationSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)},
			Status:     v1alpha1.ApplicationSnapshotStatus{Phase: phase, Plan: &v1alpha1.SnapshotPlan{ApplicationName: "app"}},
		}
	}
	app := nameOf("a/app")
	read := func(phase v1alpha1.SnapshotPhase) func(client.Object) error {
		return func(o client.Object) error {
			at("first", phase).DeepCopyInto(o.(*v1alpha1.ApplicationSnapshot))
			return nil
		}
	}
	for name, test := range map[string]struct {
		read   func(client.Object) error
		during func(g *gate) // while the API server is asked
		free   bool
		fails  bool
		holder types.UID
		woken  []string // of those that wait
	}{
		"it is":                {read: read(v1alpha1.SnapshotReleasing), holder: "first"},
		"it has ended":         {read: read(v1alpha1.SnapshotFailed), free: true, holder: "second"},
		"it is gone":           {read: func(client.Object) error { return apierrors.NewNotFound(schema.GroupResource{}, "first") }, free: true, holder: "second"},
		"nobody knows":         {read: func(client.Object) error { return errors.New("no answer") }, fails: true},
		"it leaves after that": {read: read(v1alpha1.SnapshotReleasing), during: func(g *gate) { g.release("first") }, free: true, holder: "second"},
		"it has ended, and a third waits": {
			read: read(v1alpha1.SnapshotFailed), free: true, holder: "second", woken: []string{"third"},
			during: func(g *gate) { g.enter(app, "third", nameOf("a/third")) },
		},
		"it has ended, and a third comes first": {
			read: read(v1alpha1.SnapshotFailed), holder: "third",
			during: func(g *gate) {
				g.release("first")
				g.enter(app, "third", nameOf("a/third"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			r := &Reconciler{gate: newGate(t.Context(), 1, time.Hour, nil)}
			require.NoError(t, r.waker.Source().Start(t.Context(), queue))
			r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(at("first", v1alpha1.SnapshotReleasing), at("second", v1alpha1.SnapshotCapturing)).Build()
			r.Direct = readerFunc{get: func(o client.Object) error {
				if test.during != nil {
					test.during(r.gate)
				}
				return test.read(o)
			}}
			s := &scope{r: r, obj: at("second", v1alpha1.SnapshotCapturing)}
			free, err := s.enter(t.Context())
			assert.Equal(t, test.fails, err != nil, "%v", err)
			assert.Equal(t, test.free, free)
			assert.Equal(t, test.holder, r.gate.holders[app])
			assert.Equal(t, !test.free && !test.fails, r.gate.waiting[app][nameOf("a/second")], "it is told when it can go on")
			var woken []string
			for queue.Len() > 0 {
				request, _ := queue.Get()
				woken = append(woken, request.Name)
				queue.Done(request)
			}
			assert.Equal(t, test.woken, woken)
		})
	}
}
