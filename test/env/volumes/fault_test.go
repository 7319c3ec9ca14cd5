package volumes_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
)

const limit = env.Limit

func failed(s *snapshotv1.VolumeSnapshot) bool {
	return s.Status != nil && s.Status.Error != nil && s.Status.Error.Message != nil
}

func TestFault_isInTheStatusUntilItIsGone(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two"} {
		claim := volumes.Claim(w.namespace, name, volumes.ImmediateClass)
		w.create(claim)
		w.awaitBound(claim)
	}
	remove := w.Driver.Inject(csidriver.Fault{
		Method: "CreateSnapshot", Namespace: w.namespace, Name: "two", Code: codes.ResourceExhausted, Message: "the pool is full",
	})
	defer remove()
	good, bad := w.snapshotOf("one", "good"), w.snapshotOf("two", "bad")
	w.create(good, bad)
	w.awaitReady(good)
	w.await(bad, func() bool { return failed(bad) }, "in error")
	assert.Contains(t, *bad.Status.Error.Message, "the pool is full")
	remove()
	w.awaitReady(bad)
}

// The driver has the snapshot, but is still uploading it; then that fails, and then it does not.
func TestFault_afterTheSnapshotIsTaken(t *testing.T) {
	w := newWorld(t)
	w.create(volumes.Claim(w.namespace, "data", volumes.ImmediateClass))
	w.run("app", "data")
	w.sh("app", "echo old >data/file")
	uploading := w.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.namespace, NotReady: true})
	defer uploading()
	snapshot := w.snapshotOf("data", "slow")
	w.create(snapshot)
	w.await(snapshot, func() bool { return snapshot.Status != nil && snapshot.Status.CreationTime != nil }, "taken")
	assert.False(t, ptr.Deref(snapshot.Status.ReadyToUse, true))
	w.sh("app", "echo new >data/file")

	broken := w.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.namespace, Code: codes.Internal, Message: "upload failed"})
	defer broken()
	uploading()
	w.await(snapshot, func() bool { return failed(snapshot) }, "in error")
	broken()
	w.awaitReady(snapshot)

	w.create(volumes.ClaimFrom("slow", w.namespace, "restored", volumes.ImmediateClass))
	w.run("clone", "restored")
	assert.Equal(t, "old\n", w.sh("clone", "cat restored/file"), "it was taken once")
}

func TestFault_slowForSomeCalls(t *testing.T) {
	w := newWorld(t)
	const delay = 500 * time.Millisecond
	defer w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: w.namespace, Skip: 1, Times: 1, Delay: delay})()
	took := func(name string) time.Duration {
		started := time.Now()
		claim := volumes.Claim(w.namespace, name, volumes.ImmediateClass)
		w.create(claim)
		w.awaitBound(claim)
		return time.Since(started)
	}
	took("first")
	assert.GreaterOrEqual(t, took("second"), delay)
	t.Log("an ordinary claim is bound after", took("third"))
}
