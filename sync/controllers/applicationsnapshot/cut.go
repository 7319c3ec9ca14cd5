package applicationsnapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// cut has the driver take a snapshot of each volume, and waits until it has.
func (s *scope) cut(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	if err := s.resume(ctx); err != nil {
		return "", err
	}
	now, states, err := s.look(ctx)
	if err != nil {
		return "", err
	}
	if s.late() {
		return "", s.timeout("taken", now, func(v v1alpha1.SnapshotVolume) bool { return v.Cut })
	}
	if err := s.checkErrors(now, states); err != nil {
		return "", err
	}
	if slices.ContainsFunc(now, func(v v1alpha1.SnapshotVolume) bool { return !v.Cut }) {
		s.pause(s.deadline())
		s.show(now)
		return "", s.create(ctx, states)
	}
	s.obj.Status.Volumes = now
	if err := s.checkRest(ctx); err != nil {
		return "", err
	}
	s.obj.Status.CreationTime = cutAt(states)
	s.session.cuts = s.r.watch.Cuts(states)
	consistency, err := s.consistency(ctx)
	s.obj.Status.Consistency = consistency
	return v1alpha1.SnapshotReleasing, err
}

// create creates the snapshots that are not there.
func (s *scope) create(ctx context.Context, states []volumes.State) error {
	s.message = "waiting for the volumes to be cut"
	var missing []v1alpha1.SnapshotVolume
	for i, v := range s.obj.Status.Volumes {
		if !states[i].Exists {
			missing = append(missing, v)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := s.commit(ctx); err != nil {
		return err
	}
	return refused(v1alpha1.VolumeSnapshotFailedReason, s.r.volumes.Cut(ctx, s.owner(), missing))
}

// look returns the volumes of the status with how far they are now.
func (s *scope) look(ctx context.Context) ([]v1alpha1.SnapshotVolume, []volumes.State, error) {
	states, err := s.r.watch.Look(ctx, s.owner(), s.obj.Status.Volumes)
	if err != nil {
		return nil, nil, err
	}
	now := slices.Clone(s.obj.Status.Volumes)
	for i, state := range states {
		v := &now[i]
		if v.Cut && !state.Exists {
			return nil, nil, s.checkDeleted(ctx, *v)
		}
		if state.VolumeSnapshot != "" {
			v.VolumeSnapshot = state.VolumeSnapshot
		}
		if v.VolumeSnapshot == "" && state.CutAt != nil {
			s.pause(time.Now().Add(second)) // it is not ours to watch before it is known
		}
		v.Cut, v.Ready, v.Size = v.Cut || state.CutAt != nil, state.Ready, max(v.Size, state.Size)
	}
	return now, states, nil
}

// checkDeleted fails if a VolumeSnapshot that was cut is gone.
func (s *scope) checkDeleted(ctx context.Context, v v1alpha1.SnapshotVolume) error {
	gone, err := s.r.volumes.Gone(ctx, s.obj.Namespace, v.VolumeSnapshot)
	switch {
	case err != nil:
		return err
	case gone:
		return kernel.Stalled(v1alpha1.VolumeSnapshotFailedReason, "the VolumeSnapshot of PersistentVolumeClaim %q was deleted", v.Claim)
	}
	return fmt.Errorf("VolumeSnapshot %q is not watched yet", v.VolumeSnapshot)
}

// checkErrors fails if a VolumeSnapshot has been in error for too long: the application is at rest.
func (s *scope) checkErrors(now []v1alpha1.SnapshotVolume, states []volumes.State) error {
	for i, state := range states {
		v := now[i]
		if state.Error == "" || v.Cut {
			delete(s.session.failing, v.Claim)
			continue
		}
		since, known := s.session.failing[v.Claim]
		if !known {
			since = time.Now()
			s.session.failing[v.Claim] = since
		}
		if until := since.Add(s.r.Patience); time.Now().Before(until) {
			s.pause(until)
			continue
		}
		return kernel.Stalled(v1alpha1.VolumeSnapshotFailedReason, "the VolumeSnapshot of PersistentVolumeClaim %q failed: %s", v.Claim, excerpt.Of(state.Error, mostError))
	}
	return nil
}

const second = time.Second

// mostError is how much of the message of a driver is shown.
const mostError = 512

func (s *scope) late() bool { return !time.Now().Before(s.deadline()) }

// timeout says which volumes were not done in time.
func (s *scope) timeout(what string, now []v1alpha1.SnapshotVolume, done func(v1alpha1.SnapshotVolume) bool) error {
	var names []string
	for _, v := range now {
		if !done(v) {
			names = append(names, v.Claim)
		}
	}
	return kernel.Stalled(v1alpha1.VolumeSnapshotFailedReason, "the VolumeSnapshots of PersistentVolumeClaims %s were not %s within %s: see their status, or raise spec.volumeSnapshotTimeoutSeconds",
		excerpt.Names(names, mostNames), what, s.obj.GetVolumeSnapshotTimeout())
}

// checkRest fails if the application has not been at rest all the time.
func (s *scope) checkRest(ctx context.Context) error {
	for _, hook := range s.obj.Status.Quiesced {
		for _, c := range hook.Containers {
			what, err := s.lost(ctx, c)
			if err != nil {
				return err
			}
			if what != "" {
				return kernel.Stalled(v1alpha1.NotQuiescedReason, "%s after pre-hook %q ran in it: it was not quiesced when its volumes were cut", what, hook.Name)
			}
		}
	}
	if err := s.checkStarted(ctx); err != nil {
		return err
	}
	for _, w := range s.obj.Status.Scaled {
		replicas, err := scale.Replicas(ctx, s.r.cluster, w)
		if err != nil {
			return err
		}
		if replicas != 0 {
			return kernel.Stalled(v1alpha1.NotQuiescedReason, "%s %q was scaled to %d before its volumes were cut: what keeps its replicas, such as an autoscaler or drift correction, must stop managing them; or use hooks", w.Kind, w.Name, replicas)
		}
	}
	// One that is undone looks for snapshots before it says that it begins.
	rollbacks, err := s.rollbacks(ctx, s.obj.Status.Plan.ApplicationName, s.r.Direct)
	if err != nil {
		return err
	}
	if rollback := rollbacks.first(hold.Changes); rollback != "" {
		return kernel.Stalled(v1alpha1.NotQuiescedReason, "ApplicationRollback %q began before the volumes were cut: create another ApplicationSnapshot when it has ended", rollback)
	}
	if s.obj.Status.Plan.Quiesce != v1alpha1.QuiesceScaleDown {
		return nil
	}
	using, err := scale.Using(ctx, s.r.cluster, s.obj.Namespace, s.claims())
	if err == nil && len(using) > 0 {
		err = kernel.Stalled(v1alpha1.NotQuiescedReason, "Pods %s use claims of the application, which should be scaled to zero", excerpt.Names(using, mostNames))
	}
	return err
}

// consistency says what the snapshot promises. A hook that failed, and whose action lets that pass, has
// quiesced nothing.
func (s *scope) consistency(ctx context.Context) (v1alpha1.SnapshotConsistency, error) {
	if s.obj.Status.Plan.Quiesce == v1alpha1.QuiesceScaleDown {
		return v1alpha1.ConsistencyCold, nil
	}
	rested := len(s.obj.Status.Quiesced) > 0 && s.rested()
	for _, q := range s.obj.Status.Quiesced {
		run, err := s.findHook(ctx, q.ExecutionHook)
		if err != nil {
			return "", err
		}
		rested = rested && run != nil && !slices.ContainsFunc(run.Status.Runs, func(r v1alpha1.HookRun) bool { return r.State != v1alpha1.HookRunSucceeded })
	}
	if rested {
		return v1alpha1.ConsistencyApplication, nil
	}
	var group string
	for i, v := range s.obj.Status.Volumes {
		if v.VolumeGroupSnapshot == "" || i > 0 && v.VolumeGroupSnapshot != group {
			return v1alpha1.ConsistencyPerVolume, nil
		}
		group = v.VolumeGroupSnapshot
	}
	if group == "" {
		return v1alpha1.ConsistencyPerVolume, nil
	}
	return v1alpha1.ConsistencyGroup, nil
}

// cutAt returns when the last volume was cut.
func cutAt(states []volumes.State) *metav1.Time {
	var last *metav1.Time
	for _, state := range states {
		if state.CutAt != nil && (last == nil || last.Before(state.CutAt)) {
			last = state.CutAt
		}
	}
	if last == nil {
		now := metav1.Now()
		return &now
	}
	return last
}

// wait waits until volumes can be made from all snapshots.
func (s *scope) wait(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	s.leave() // if it was not known that what release wrote has arrived
	now, states, err := s.look(ctx)
	if err != nil {
		return "", err
	}
	if ready, _ := usable(now); ready < len(now) {
		if s.late() {
			return "", s.timeout("ready to use", now, func(v v1alpha1.SnapshotVolume) bool { return v.Ready })
		}
		s.pause(s.deadline())
		s.show(now)
		s.message = awaited(s.obj.Status.Volumes)
		return "", nil
	}
	if err := s.checkCut(ctx, now, states); err != nil {
		return "", err
	}
	ready, size := usable(now)
	s.obj.Status.Volumes = now
	s.obj.Status.Size = resource.NewQuantity(size, resource.BinarySI).String()
	s.completed(v1alpha1.VolumeSnapshotCompletedCondition, "%d VolumeSnapshots are ready to use", ready)
	return v1alpha1.SnapshotBinding, nil
}

// checkCut fails if a volume was cut again since the application was released, which it may have been then.
func (s *scope) checkCut(ctx context.Context, now []v1alpha1.SnapshotVolume, states []volumes.State) error {
	again, err := s.r.watch.CutAgain(ctx, now, states, s.session.cuts)
	if err != nil || len(again) == 0 {
		return err
	}
	return kernel.Stalled(v1alpha1.NotQuiescedReason, "the VolumeSnapshotContents of PersistentVolumeClaims %s were deleted after their volumes were cut, so that these are cut again when the application is not quiesced: create another ApplicationSnapshot",
		excerpt.Names(again, mostNames))
}

// awaited says how many volumes are ready to use.
func awaited(volumes []v1alpha1.SnapshotVolume) string {
	ready, _ := usable(volumes)
	return fmt.Sprintf("%d of %d VolumeSnapshots are ready to use", ready, len(volumes))
}

// usable returns how many volumes are ready to use, and the size of all that is known of.
func usable(volumes []v1alpha1.SnapshotVolume) (ready int, size int64) {
	for _, v := range volumes {
		if v.Ready {
			ready++
		}
		size += v.Size
	}
	return ready, size
}
