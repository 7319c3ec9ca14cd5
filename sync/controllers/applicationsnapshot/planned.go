package applicationsnapshot

import (
	"maps"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// mostCommands is how much the commands of all post-hooks of a snapshot have: they are in its status while the application
// may be quiesced.
const mostCommands = 256 << 10

// planned returns HookActions as they are to be run later, sorted by their names.
func planned(actions map[string]*v1alpha1.HookAction) ([]v1alpha1.PlannedAction, error) {
	var found []v1alpha1.PlannedAction
	size := 0
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		spec := actions[name].Spec
		for _, part := range spec.Action.Exec.Command {
			size += len(part)
		}
		found = append(found, v1alpha1.PlannedAction{Name: name, Action: spec.Action, Timeout: spec.Timeout, OnError: spec.OnError})
	}
	if size > mostCommands {
		return nil, kernel.Stalled(v1alpha1.HookTargetInvalidReason, "the commands of the post-hooks have more than %d KiB together: move them into a file of the container", mostCommands>>10)
	}
	return found, nil
}

// planned returns the action of a post-hook; nil for a snapshot that was begun by an earlier version.
func (s *scope) planned(name string) *v1alpha1.HookActionSpec {
	for _, a := range s.obj.Status.Plan.PostActions {
		if a.Name == name {
			return &v1alpha1.HookActionSpec{Action: a.Action, Timeout: a.Timeout, OnError: a.OnError}
		}
	}
	return nil
}
