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
	return summarize(problems, len(s.session.problems), s.session.count*clusters)
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
		counts = append(counts, counted(unread, "manifest")+" cannot be used")
	}
	if refused > 0 {
		counts = append(counts, fmt.Sprintf("%d of %s cannot be applied", refused, counted(max(all, refused), "object")))
	}
	if left > 0 {
		counts = append(counts, counted(left, "object")+" cannot be deleted")
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

// tellRecreated records an event for what was deleted to be created again.
func (s *scope) tellRecreated(t *target, changes []apply.Change) {
	var names []string
	for _, c := range changes {
		if c.Action == apply.Recreated {
			names = append(names, c.ID.String())
		}
	}
	if len(names) > 0 {
		s.pass.Tell(reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: v1alpha1.RecreatedReason, Action: "Recreate",
			Note: t.prefix() + "deleted and created again, because a field cannot be changed: " + excerpt.Names(names, 10),
		})
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return reconcile.Amount(n) + " " + noun + "s"
}
