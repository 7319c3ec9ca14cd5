package gitsync

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// summarize counts the problems of the manifests and of every cluster, and shows the first.
func (s *scope) summarize(problems []manifest.Problem) string {
	clusters := 0
	for _, t := range s.session.targets {
		if t.state.Usable() && !t.leaving {
			clusters++
		}
	}
	return summarize(problems, len(s.session.desired.problems), s.session.desired.count*clusters)
}

// summarize counts problems by what they keep from happening, and shows the first. The first unread of
// them are about manifests; all is how many objects were to be applied.
func summarize(problems []manifest.Problem, unread, all int) string {
	var refused, left int
	for _, p := range problems[unread:] {
		if p.Removal {
			left++
		} else {
			refused++
		}
	}
	var counts []string
	if unread > 0 {
		counts = append(counts, excerpt.Count(unread, "manifest")+" cannot be used")
	}
	if refused > 0 {
		counts = append(counts, fmt.Sprintf("%d of %s cannot be applied", refused, excerpt.Count(max(all, refused), "object")))
	}
	if left > 0 {
		counts = append(counts, excerpt.Count(left, "object")+" cannot be deleted")
	}
	return fmt.Sprintf("%s: %s%s", strings.Join(counts, ", "), problems[0].Error(), excerpt.AndMore(len(problems)-1))
}

// ignored says, to be appended to a message, what of the objects has no effect.
func ignored(objects []manifest.Object) string {
	all := manifest.Ignored(objects)
	if len(all) == 0 {
		return ""
	}
	return "; " + all[0].Error() + excerpt.AndMore(len(all)-1)
}

// tellChanges records events for what was deleted: to be created again, or because the repository does not have it any more.
func (s *scope) tellChanges(t *target, changes []apply.Change) {
	for _, told := range []struct {
		action            apply.Action
		reason, act, note string
	}{
		{apply.Recreated, v1alpha1.RecreatedReason, "Recreate", "deleted and created again, because a field cannot be changed: "},
		{apply.Deleted, v1alpha1.PrunedReason, "Prune", fmt.Sprintf("deleted, because not in %s: ", s.session.desired.source.revision)},
	} {
		var names []string
		for _, c := range changes {
			if c.Action == told.action {
				names = append(names, c.ID.String())
			}
		}
		if len(names) > 0 {
			s.pass.Tell(reconcile.Event{
				Type: corev1.EventTypeNormal, Reason: told.reason, Action: told.act, Note: t.prefix() + told.note + excerpt.Names(names, 10),
			})
		}
	}
}
