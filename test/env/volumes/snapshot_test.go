package volumes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env/volumes"
)

func TestSnapshot_holdsWhatWasThere(t *testing.T) {
	w := newWorld(t)
	w.create(volumes.Claim(w.namespace, "data", volumes.FirstConsumerClass))
	w.run("app", "data")
	w.sh("app", "mkdir -m 0700 data/sub && echo old >data/sub/file")

	snapshot := w.snapshotOf("data", "before")
	w.create(snapshot)
	w.awaitReady(snapshot)
	w.sh("app", "echo new >data/sub/file; touch data/late")

	w.create(volumes.ClaimFrom("before", w.namespace, "restored", volumes.FirstConsumerClass))
	w.run("clone", "restored")
	assert.Equal(t, "old\nsub\n", w.sh("clone", "cat restored/sub/file; ls restored"))
	assert.Equal(t, "700\n", w.sh("clone", "stat -c %a restored/sub"))

	w.sh("clone", "echo of the clone >restored/sub/file")
	assert.Equal(t, "new\n", w.sh("app", "cat data/sub/file"), "they have nothing in common any more")
}

func TestGroupSnapshot_isOfOneMoment(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app": "ledger"}
	for _, name := range []string{"left", "right"} {
		claim := volumes.Claim(w.namespace, name, volumes.ImmediateClass)
		claim.Labels = labels
		w.create(claim)
	}
	pod := w.run("app", "left", "right")
	w.sh("app", "echo 0 | tee left/n >right/n")
	written := make(chan error, 1)
	go func() {
		// Every number is in left before it is in right, and at most one is missing there.
		_, err := w.Exec(t.Context(), w.namespace, "app", "n=0; while :; do n=$((n+1)); echo $n >left/n.new; mv left/n.new left/n; echo $n >right/n.new; mv right/n.new right/n; done")
		written <- err
	}()
	require.Eventually(t, func() bool {
		result, err := w.Exec(t.Context(), w.namespace, "app", "cat right/n")
		return err == nil && result.Stdout != "0\n"
	}, limit, often)

	group := &groupsnapshotv1.VolumeGroupSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "group"},
		Spec: groupsnapshotv1.VolumeGroupSnapshotSpec{Source: groupsnapshotv1.VolumeGroupSnapshotSource{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
		}},
	}
	w.create(group)
	w.await(group, func() bool { return group.Status != nil && ptr.Deref(group.Status.ReadyToUse, false) }, "ready to use")
	require.NoError(t, w.Delete(t.Context(), pod)) // ends the writer

	members := w.awaitReadySnapshots(2)
	var restored []string
	for _, s := range members {
		name := *s.Spec.Source.PersistentVolumeClaimName + "-restored"
		w.create(volumes.ClaimFrom(s.Name, w.namespace, name, volumes.ImmediateClass))
		restored = append(restored, name)
	}
	w.run("clone", restored...)
	var left, right int
	_, err := fmt.Sscan(strings.TrimSpace(w.sh("clone", "cat left-restored/n right-restored/n")), &left, &right)
	require.NoError(t, err)
	assert.Contains(t, []int{left, left - 1}, right, "right, when left has %d", left)
	select {
	case err := <-written:
		assert.NoError(t, err)
	case <-time.After(limit):
		assert.Fail(t, "the command does not end with its Pod")
	}
}
