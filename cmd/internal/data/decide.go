package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

func objectKey(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// newest returns the rollback that --name names, else the newest of the application.
func (o *rollingBack) newest(ctx context.Context, s *session, app *v1alpha1.StatefulApplication) (*v1alpha1.ApplicationRollback, error) {
	if o.name != "" {
		rollback := &v1alpha1.ApplicationRollback{}
		rollback.Namespace, rollback.Name = app.Namespace, o.name
		if err := s.client.Get(ctx, objectKey(rollback), rollback); err != nil {
			return nil, fmt.Errorf("get %s: %w", nameOf(v1alpha1.ApplicationRollbackKind, rollback), s.target.Explain(err))
		}
		if rollback.Spec.ApplicationName != app.Name {
			return nil, fmt.Errorf("%s is of StatefulApplication %s, and not of %s",
				nameOf(v1alpha1.ApplicationRollbackKind, rollback), rollback.Spec.ApplicationName, app.Name)
		}
		return rollback, nil
	}
	list := &v1alpha1.ApplicationRollbackList{}
	if err := s.client.List(ctx, list, client.InNamespace(app.Namespace)); err != nil {
		return nil, fmt.Errorf("list the ApplicationRollbacks in %s: %w", app.Namespace, s.target.Explain(err))
	}
	own := slices.DeleteFunc(list.Items, func(r v1alpha1.ApplicationRollback) bool { return r.Spec.ApplicationName != app.Name })
	if len(own) == 0 {
		return nil, fmt.Errorf("%s was not rolled back: there is no ApplicationRollback of it", nameOf(v1alpha1.StatefulApplicationKind, app))
	}
	newest := slices.MaxFunc(own, func(a, b v1alpha1.ApplicationRollback) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return &newest, nil
}

// decide sets spec.decision, and follows what comes of it.
func (o *rollingBack) decide(ctx context.Context, s *session, rollback *v1alpha1.ApplicationRollback, decision v1alpha1.RollbackDecision) error {
	if err := possible(rollback, decision, s.there()); err != nil {
		return err
	}
	if err := s.change(ctx, rollback, map[string]any{"decision": decision}); err != nil {
		return err
	}
	fmt.Fprintf(s.env.Out, "%s: decision is %s\n", nameOf(v1alpha1.ApplicationRollbackKind, rollback), decision)
	if !o.wait {
		return nil
	}
	wanted := v1alpha1.RollbackReverted
	if decision == v1alpha1.RollbackConfirmed {
		wanted = v1alpha1.RollbackFinal
	}
	return s.follow(ctx, rollback, read(func(r *v1alpha1.ApplicationRollback) course { return ofRollback(r, wanted) }))
}

// possible returns why a rollback is past the decision, or not ready for it. there is the flag that
// leads to its cluster.
func possible(rollback *v1alpha1.ApplicationRollback, decision v1alpha1.RollbackDecision, there string) error {
	name, phase := nameOf(v1alpha1.ApplicationRollbackKind, rollback), rollback.Status.Phase
	switch {
	case phase == v1alpha1.RollbackFinal && decision == v1alpha1.RollbackUndone:
		message := name + " cannot be undone: the volumes of before are deleted"
		if saved := rollback.Status.SafetySnapshot; saved != "" {
			message += fmt.Sprintf("; roll back to the snapshot that was taken of them: waybill rollback %s -n %s%s --to %s",
				rollback.Spec.ApplicationName, rollback.Namespace, there, saved)
		}
		return fmt.Errorf("%s", message)
	case phase == v1alpha1.RollbackReverted, phase == v1alpha1.RollbackFinal, phase == v1alpha1.RollbackFailed:
		return fmt.Errorf("%s is %s already", name, phase)
	case decision == v1alpha1.RollbackConfirmed && phase != v1alpha1.RollbackCompleted:
		return fmt.Errorf("%s is not Completed, but %s: it can be confirmed after that", name, orNew(phase))
	}
	return nil
}

func orNew(phase v1alpha1.RollbackPhase) v1alpha1.RollbackPhase {
	if phase == "" {
		return v1alpha1.RollbackPending
	}
	return phase
}

// release ends the hold of a rollback.
func (s *session) release(ctx context.Context, rollback *v1alpha1.ApplicationRollback) error {
	name := nameOf(v1alpha1.ApplicationRollbackKind, rollback)
	if rollback.Spec.Hold != nil && !*rollback.Spec.Hold {
		fmt.Fprintf(s.env.Out, "%s holds nothing already\n", name)
		return nil
	}
	if err := s.change(ctx, rollback, map[string]any{"hold": false}); err != nil {
		return err
	}
	fmt.Fprintf(s.env.Out, "%s: %s released; those who deliver them put back what they want\n", name, output.Count(len(rollback.Status.Held), "object"))
	return nil
}

// change sets fields of the spec of a rollback.
func (s *session) change(ctx context.Context, rollback *v1alpha1.ApplicationRollback, fields map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if err := s.client.Patch(ctx, rollback, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("change %s: %w", nameOf(v1alpha1.ApplicationRollbackKind, rollback), s.target.Explain(err))
	}
	return nil
}

// ofRollback returns the course of a rollback that is followed until it is in one of the wanted phases.
func ofRollback(r *v1alpha1.ApplicationRollback, wanted ...v1alpha1.RollbackPhase) course {
	c := course{phase: string(r.Status.Phase)}
	c.came = func(phase string) string { return rollbackCame(r, v1alpha1.RollbackPhase(phase)) }
	c.judge(&r.Status.ReconcileStatus, r.Generation)
	asked := slices.Contains(wanted, r.Status.Phase)
	switch r.Status.Phase {
	case v1alpha1.RollbackCompleted:
		if asked {
			c.end(true, "completed: the application is as in the snapshot")
		}
	case v1alpha1.RollbackFinal:
		c.end(asked, "confirmed: the volumes of before are deleted")
	case v1alpha1.RollbackReverted:
		result := "reverted: the application is as it was before the rollback"
		if r.Status.Error != nil {
			result += ": " + why(r.Status.Error, c.message)
		}
		c.end(asked || r.Status.Error == nil, result)
	case v1alpha1.RollbackFailed:
		c.end(false, "failed: "+why(r.Status.Error, c.message))
	}
	return c
}

func rollbackCame(r *v1alpha1.ApplicationRollback, phase v1alpha1.RollbackPhase) string {
	status := &r.Status
	switch phase {
	case v1alpha1.RollbackSaving:
		if status.SafetySnapshot != "" {
			return "the state before is in ApplicationSnapshot/" + status.SafetySnapshot
		}
	case v1alpha1.RollbackHolding:
		return output.Count(len(status.Held), "object") + " held"
	case v1alpha1.RollbackScalingDown:
		return output.Count(len(status.Scaled), "workload") + " scaled to zero"
	case v1alpha1.RollbackRestoring:
		return ofVolumes(status.Volumes, "restored", func(v v1alpha1.RollbackVolume) bool { return v.After != "" })
	case v1alpha1.RollbackSwapping:
		return ofVolumes(status.Volumes, "swapped", func(v v1alpha1.RollbackVolume) bool { return v.Swapped })
	}
	return ""
}
