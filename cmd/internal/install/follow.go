package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/await"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/output"
)

// The phases of an installation, as shown while it is followed.
const (
	installing   = "Installing"
	starting     = "Starting"
	uninstalling = "Uninstalling"
)

// patient lists the reasons of Ready=False with which an installation waits for others, and becomes
// ready without a new attempt: for its own objects, for what it depends on, for a snapshot before an
// upgrade.
var patient = []string{
	v1alpha1.NotHealthyReason, v1alpha1.ProgressingReason,
	v1alpha1.DependencyNotReadyReason, v1alpha1.RequirementMissingReason, v1alpha1.SnapshotPendingReason,
}

// state is how far an installation is.
type state struct {
	output.Step
	ready bool
	// taken says that waybill-sync has said anything of what is wanted.
	taken  bool
	result string
}

// stateOf returns how far an installation is with what its spec wants.
func stateOf(inst *v1alpha1.ApplicationInstallation) state {
	s := state{Step: output.Step{Phase: installing}}
	s.Came = func(phase string) string {
		if r := inst.Status.Release; phase == installing && r != nil {
			return fmt.Sprintf("release %s/%s revision %d of %s", r.Namespace, r.Name, r.Revision, r.Chart)
		}
		return ""
	}
	ready := meta.FindStatusCondition(inst.Status.Conditions, v1alpha1.ReadyCondition)
	s.taken = inst.Status.ObservedGeneration >= inst.Generation
	if doing := meta.FindStatusCondition(inst.Status.Conditions, v1alpha1.ReconcilingCondition); doing != nil {
		s.Message = doing.Message
	}
	if ready == nil || !s.taken {
		return s
	}
	s.Message = ready.Message
	if meta.IsStatusConditionTrue(inst.Status.Conditions, v1alpha1.InstalledCondition) {
		s.Phase = starting
	}
	stalled := meta.IsStatusConditionTrue(inst.Status.Conditions, v1alpha1.StalledCondition)
	switch {
	case ready.Status == metav1.ConditionTrue:
		s.Ended, s.ready, s.result = true, true, "ready: "+ready.Message
	case stalled, ready.Status == metav1.ConditionFalse && !slices.Contains(patient, ready.Reason):
		s.Ended, s.result = true, fmt.Sprintf("not ready: %s: %s", ready.Reason, ready.Message)
	}
	return s
}

// follow prints how far an installation is until it is ready, or cannot be, which is ErrNegative.
func (s *session) follow(ctx context.Context, inst *v1alpha1.ApplicationInstallation) error {
	if s.Target.Paused {
		fmt.Fprintf(s.env.ErrOut, "KubernetesCluster %s is paused: nothing is installed until `waybill resume cluster/%s -n %s`\n", s.Target.Key, s.Target.Key.Name, s.Target.Key.Namespace)
		return cli.ErrNegative
	}
	watched, err := Untyped(inst)
	if err != nil {
		return err
	}
	steps := output.NewSteps(s.env.Out, s.env.ErrOut, s.NameOf(inst))
	defer steps.Stop()
	now := state{}
	see := func(live *unstructured.Unstructured) bool {
		seen := &v1alpha1.ApplicationInstallation{}
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, seen); err == nil && seen.Generation >= inst.Generation {
			now = stateOf(seen)
			steps.See(now.Step)
		}
		return err != nil || now.Ended
	}
	last, ended := await.Until(ctx, s.Target, watched, see)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.NameOf(inst), err)
	}
	if last != nil && !now.Ended {
		see(last) // it may have been read only now
	}
	steps.Stop()
	if !now.Ended {
		return s.unfinished(ctx, inst, now, ended)
	}
	steps.See(output.Step{Ended: true, Came: now.Came}) // the line of the last phase
	steps.Finish(output.Shorten(now.result), now.ready)
	if now.ready {
		return nil
	}
	s.hint(inst)
	return cli.ErrNegative
}

// unfinished returns why an installation is no longer followed, and says how to go on.
func (s *session) unfinished(ctx context.Context, inst *v1alpha1.ApplicationInstallation, now state, ended error) error {
	name := s.NameOf(inst)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("interrupted: %s stays and goes on; to follow it: %s", name, s.again(inst))
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", name, ended)
	case !now.taken && now.Message == "":
		fmt.Fprintf(s.env.ErrOut, "%s: not reconciled yet: check that waybill-sync runs in the hub, and that this is one of its clusters\n", name)
	default:
		fmt.Fprintf(s.env.ErrOut, "%s: not done in time: %s\n", name, output.Escape(output.Joined(now.Phase, now.Message)))
	}
	s.hint(inst)
	return cli.ErrNegative
}

// inProgress says how to follow what was asked for.
func (s *session) inProgress(inst *v1alpha1.ApplicationInstallation) {
	fmt.Fprintf(s.env.Out, "%s is in progress; to follow it: %s\n", s.NameOf(inst), s.again(inst))
}

// hint says how to follow what goes on without the command.
func (s *session) hint(inst *v1alpha1.ApplicationInstallation) {
	fmt.Fprintf(s.env.ErrOut, "It goes on without this command; to follow it: %s\n", s.again(inst))
}

// again returns the command that shows how far an installation is.
func (s *session) again(inst *v1alpha1.ApplicationInstallation) string {
	return fmt.Sprintf("waybill get installation/%s%s --watch", inst.Name, s.there(inst))
}

// followRemoval waits until an installation is gone.
func (s *session) followRemoval(ctx context.Context, inst *v1alpha1.ApplicationInstallation, fate installation.Fate) error {
	watched, err := Untyped(inst)
	if err != nil {
		return err
	}
	steps := output.NewSteps(s.env.Out, s.env.ErrOut, s.NameOf(inst))
	now := state{Step: output.Step{Phase: uninstalling}}
	steps.See(now.Step)
	err = await.Gone(ctx, s.Target, watched, func(live *unstructured.Unstructured) {
		seen := &v1alpha1.ApplicationInstallation{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, seen) != nil {
			return // what it says is not vital
		}
		now.taken, now.Message = true, ""
		ready := meta.FindStatusCondition(seen.Status.Conditions, v1alpha1.ReadyCondition)
		switch {
		case !slices.Contains(seen.Finalizers, v1alpha1.Finalizer):
			now.Message = "its application is uninstalled, and it waits for " + strings.Join(seen.Finalizers, ", ")
		case ready != nil && ready.Status != metav1.ConditionTrue:
			now.Message = ready.Message
		}
		steps.See(now.Step)
	})
	steps.Stop()
	if err == nil {
		steps.Finish(removed(fate), true)
		return nil
	}
	return s.unfinished(ctx, inst, now, err)
}

// removed says what became of what an installation had installed, now that the installation is gone.
func removed(fate installation.Fate) string {
	switch {
	case !fate.Stays:
		return "uninstalled"
	case fate.Unknown != "":
		return "deleted; what it has installed stays, unless its definition forbids that"
	}
	return "deleted; what it has installed stays"
}
