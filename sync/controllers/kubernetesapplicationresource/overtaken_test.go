package kubernetesapplicationresource_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// stops holds up a process where a test wants it: a job that is about to declare what it will
// apply, and a pass that is about to read Secrets. Each is held once it is armed, reports that, and goes
// on when it is released.
type stops struct {
	client.Client
	declare, read *stop
}

type stop struct{ armed, reached, left chan struct{} }

func newStop() *stop {
	return &stop{make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
}

func (s *stop) arm() { s.armed <- struct{}{} }

// await waits until something is held.
func (s *stop) await(w *world) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		select {
		case <-s.reached:
			return true
		default:
			return false
		}
	}), "it is not reached")
}

// pass holds up who comes along first after it was armed.
func (s *stop) pass(ctx context.Context) {
	select {
	case <-s.armed:
	default:
		return
	}
	close(s.reached)
	select {
	case <-s.left:
	case <-ctx.Done():
	}
}

func (s *stops) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, reads := list.(*v1alpha1.KubernetesClusterList); reads {
		s.read.pass(ctx)
	}
	return s.Client.List(ctx, list, opts...)
}

func (s *stops) Status() client.SubResourceWriter { return stoppedStatus{s.Client.Status(), s} }

type stoppedStatus struct {
	client.SubResourceWriter
	*stops
}

func (s stoppedStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if data, err := patch.Data(o); err == nil && bytes.Contains(data, []byte("inventory")) {
		s.declare.pass(ctx)
	}
	return s.SubResourceWriter.Patch(ctx, o, patch, opts...)
}

// newStoppedWorld returns a world with a process that can be held up.
func newStoppedWorld(t *testing.T) (*world, *stops) {
	t.Helper()
	w, s := newOwnWorld(t), &stops{declare: newStop(), read: newStop()}
	w.process = startWith(t, ownProcess+"="+w.Namespace, func(c client.Client) client.Client {
		s.Client = c
		return s
	})
	t.Cleanup(w.stop)
	w.connect(w.berlin)
	return w, s
}

func rename(secret string) func(*v1alpha1.KubernetesApplicationResource) {
	return func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: secret}}
	}
}

// C41: a pass has read the status before a job declared a copy, and begins the next job after that
// one has ended: the copy, whose Secret is no longer named, is not forgotten.
func TestOvertaken_byAJobThatDeclares(t *testing.T) {
	w, stops := newStoppedWorld(t)
	w.secret("one", "1")
	w.secret("two", "2")
	stops.declare.arm()
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "x"), "one"))
	stops.declare.await(w)
	stops.read.arm()
	hub.Change(w.World, kar, rename("two"))
	stops.read.await(w)

	close(stops.declare.left)
	w.berlin.awaitValue("web", "x")
	w.berlin.awaitPassword("web-one", "1")
	close(stops.read.left)
	w.berlin.awaitPassword("web-two", "2")
	w.berlin.AwaitGone(&corev1.Secret{}, "web-one")
	hub.AwaitReady(w.World, kar)
	require.Len(t, kar.Status.Inventory.Entries, 2)
}

// A Secret that is gone, or may not leave the hub any more, before it is known that the object is
// in the cluster: it is, and is kept as it is templated.
func TestOvertaken_bySecrets(t *testing.T) {
	cases := map[string]struct {
		reason string
		end    func(*world, *corev1.Secret)
	}{
		"Missing": {v1alpha1.SecretNotFoundReason, func(w *world, source *corev1.Secret) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), source))
		}},
		"Barred": {v1alpha1.SecretNotPropagatedReason, func(w *world, source *corev1.Secret) {
			hub.Change(w.World, source, func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "git"} })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, stops := newStoppedWorld(t)
			source := w.secret("mysql", "one")
			stops.declare.arm()
			kar := w.submit(w.resource("web", w.berlin.service("web"), "mysql"))
			stops.declare.await(w)
			stops.read.arm()
			tc.end(w, source)
			stops.read.await(w)
			close(stops.read.left)
			close(stops.declare.left)

			hub.AwaitReason(w.World, kar, tc.reason)
			w.awaitRemote(kar, `{"loadBalancer":{}}`)
			assert.Equal(t, w.berlin.Namespace, kar.Status.Namespace)
			copied := w.berlin.Exists(&corev1.Secret{}, "web-mysql")
			assert.Equal(t, tc.reason == v1alpha1.SecretNotFoundReason, copied)
			assert.Equal(t, copied, slices.ContainsFunc(kar.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool {
				return e.ID == w.berlin.Namespace+"_web-mysql__Secret"
			}), "%v", kar.Status.Inventory.Entries)
		})
	}
}
