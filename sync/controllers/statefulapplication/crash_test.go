package statefulapplication_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// deaths say after how many writes a process dies, as far as a namespace can tell. It is shared by the
// clients of all processes of this package.
type deaths struct {
	sync.Mutex
	left map[string]int
}

var mortal = deaths{left: map[string]int{}}

var errDead = errors.New("the process was killed")

// write carries out a write, unless the process has died before it.
func (d *deaths) write(o client.Object, carryOut func() error) error {
	namespace := o.GetNamespace()
	if u, ok := o.(*unstructured.Unstructured); ok && namespace == "" {
		namespace, _, _ = unstructured.NestedString(u.Object, "spec", "volumeSnapshotRef", "namespace")
	}
	d.Lock()
	left, counted := d.left[namespace]
	if counted && left > 0 {
		d.left[namespace] = left - 1
	}
	d.Unlock()
	if counted && left == 0 {
		return errDead
	}
	return carryOut()
}

func (d *deaths) dead(namespace string) bool {
	d.Lock()
	defer d.Unlock()
	left, counted := d.left[namespace]
	return counted && left == 0
}

func (d *deaths) set(namespace string, writes int) {
	d.Lock()
	defer d.Unlock()
	d.left[namespace] = writes
}

func (d *deaths) revive() {
	d.Lock()
	defer d.Unlock()
	clear(d.left)
}

// mortalClient is the client of a process that can be killed after each write.
type mortalClient struct{ client.Client }

func (c mortalClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return mortal.write(o, func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c mortalClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return mortal.write(o, func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c mortalClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return mortal.write(o, func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c mortalClient) Status() client.SubResourceWriter { return mortalStatus{c.Client.Status()} }

type mortalStatus struct{ client.SubResourceWriter }

func (s mortalStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return mortal.write(o, func() error { return s.SubResourceWriter.Patch(ctx, o, p, opts...) })
}

// S97, S98, S99, S100: a restore that was killed after any of its writes is finished by the next process, and leaves
// nothing behind.
func TestRestore_killedAfterEachWrite(t *testing.T) {
	const most = 20 // a whole restore takes fewer
	w := newWorld(t)
	class := w.class(nil)
	w.Create(volumes.Claim(w.Namespace, "shop-cache", volumes.ImmediateClass))
	require.True(t, w.Eventually(func() bool {
		claim := &corev1.PersistentVolumeClaim{}
		return w.Exists(claim, "shop-cache") && claim.Status.Phase == corev1.ClaimBound
	}))
	definitions := strings.Replace(plain, volumes.FirstConsumerClass, volumes.ImmediateClass, 1)
	snapshot, _ := w.captured("before", definitions, map[string]v1alpha1.NamespacedReference{"shop-cache": w.cut("shop-cache", "before")})

	var worlds []*world
	var clones []*v1alpha1.StatefulApplication
	died := map[v1alpha1.RestorePhase]int{}
	for writes := range most {
		o, a := w.other(), clone(fmt.Sprintf("killed-%d", writes), class, snapshot)
		mortal.set(o.Namespace, writes)
		o.Create(a)
		worlds, clones = append(worlds, o), append(clones, a)
	}
	for i, o := range worlds {
		require.True(t, o.Eventually(func() bool {
			require.NoError(t, o.Client.Get(t.Context(), client.ObjectKeyFromObject(clones[i]), clones[i]))
			return mortal.dead(o.Namespace) || len(clones[i].Finalizers) == 0 && clones[i].Status.Source != nil
		}), "after %d writes it is neither dead nor done: %+v", i, clones[i].Status)
		phase := v1alpha1.RestorePhase("")
		if clones[i].Status.Restore != nil {
			phase = clones[i].Status.Restore.Phase
		}
		died[phase]++
	}
	for _, phase := range []v1alpha1.RestorePhase{"", v1alpha1.RestorePending, v1alpha1.RestoreClaims, v1alpha1.RestoreObjects, v1alpha1.RestoreCompleted} {
		assert.Positive(t, died[phase], "none died at phase %q: %v", phase, died)
	}

	w.restart(mortal.revive)
	for i, o := range worlds {
		hub.AwaitReady(o.World, clones[i])
		assert.Equal(t, v1alpha1.RestoreCompleted, clones[i].Status.Restore.Phase, "killed after %d writes", i)
		hub.Await(o.World, clones[i], "it still has its finalizer", func(a *v1alpha1.StatefulApplication) bool { return len(a.Finalizers) == 0 })
		assert.True(t, o.Exists(&corev1.Service{}, clones[i].Name))
		o.nothingStatic()
	}
}
