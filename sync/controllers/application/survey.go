package application

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
)

// survey records which components exist and how they are. It finds them by the
// annotation, and objects that should not be owned but are by the ownerReference.
func (r *Reconciler) survey(s *scope) {
	s.unseen = r.lastSeen(s) // first: what can be seen from now on is found below
	s.components = make(map[tracker.Ref]*tracker.Object)
	for _, o := range r.tracker.By(annotationKey(s.key)) {
		if !ownership.IsHealthCheck(o) && s.entry.member.Matches(o.GroupKind, o.GetObjectMeta()) {
			s.components[o.Ref] = o
		}
	}
	for _, o := range r.tracker.By(ownerKey(s.key.Namespace, s.app.UID)) {
		_, component := s.components[o.Ref]
		if !o.Deleting && !ownership.IsHealthCheck(o) && (!component || s.entry.member.Ownership == v1alpha1.OwnershipObserve) {
			s.stale = append(s.stale, o)
		}
	}
	s.app.Status.Components, s.entries = nil, make(map[tracker.Ref]int, len(s.components))
	s.leaving = sets.New[tracker.Ref]()
	for gk := range s.entry.wanted {
		if r.tracker.State(gk).Phase == tracker.Starting {
			s.starting = append(s.starting, gk.String())
		}
	}
	s.surveyListed(r)
	s.surveyStale(r)
	s.keepUnseen()
	slices.SortFunc(s.app.Status.Components, func(a, b v1alpha1.ComponentStatus) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// surveyListed adds what the spec lists: first the components with a name, then the rest.
func (s *scope) surveyListed(r *Reconciler) {
	nameless := make(map[schema.GroupKind]bool)
	shown := make(map[tracker.Ref]bool, len(s.components))
	for _, c := range s.app.Spec.Components {
		if c.Name == "" {
			nameless[kindOf(c)] = true
			continue
		}
		ref := refOf(s.key.Namespace, c)
		shown[ref] = true
		s.add(s.named(r, ref))
	}
	found := make(map[schema.GroupKind]bool, len(nameless))
	for ref, o := range s.components {
		if nameless[ref.GroupKind] && !shown[ref] {
			s.add(s.installed(r, o))
		}
		found[ref.GroupKind] = true
	}
	for _, ref := range r.keeper.Contested(s.key) {
		if nameless[ref.GroupKind] && !shown[ref] {
			s.add(absent(ref, health.Unknown, contested(r.keeper.Contenders(ref))))
			found[ref.GroupKind] = true
		}
	}
	for ref, c := range s.unseen {
		if c.Installed && nameless[ref.GroupKind] && !shown[ref] {
			s.add(s.notThere(r, ref, ""))
			found[ref.GroupKind] = true
		}
	}
	for gk := range nameless {
		if !found[gk] {
			none := tracker.Ref{GroupKind: gk, NamespacedName: types.NamespacedName{Namespace: s.key.Namespace}}
			s.add(s.notThere(r, none, "no object of the kind belongs to the Application"))
		}
	}
}

// add adds a status, replacing the one of the same object.
func (s *scope) add(c v1alpha1.ComponentStatus) {
	ref := shownAs(s.key.Namespace, c)
	if at, known := s.entries[ref]; known {
		s.app.Status.Components[at] = c
		return
	}
	s.entries[ref] = len(s.app.Status.Components)
	s.app.Status.Components = append(s.app.Status.Components, c)
}

// shownAs returns the object that a component in a status stands for.
func shownAs(namespace string, c v1alpha1.ComponentStatus) tracker.Ref {
	return refOf(namespace, v1alpha1.ApplicationComponent{Group: c.Group, Kind: c.Kind, Name: c.Name})
}

// named returns the status of a component that the spec lists by name.
func (s *scope) named(r *Reconciler, ref tracker.Ref) v1alpha1.ComponentStatus {
	if o := s.components[ref]; o != nil {
		return s.installed(r, o)
	}
	o := r.tracker.Get(ref)
	if o == nil {
		_, message := health.Of(nil)
		return s.notThere(r, ref, message)
	}
	return absent(ref, health.NotFound, s.stranger(r, o))
}

// stranger returns why an existing object is not a component.
func (s *scope) stranger(r *Reconciler, o *tracker.Object) string {
	name, named := o.Annotations[v1alpha1.ApplicationAnnotation]
	contenders := r.keeper.Contenders(o.Ref)
	switch {
	case ownership.IsHealthCheck(o):
		return "is the Pod of a health check"
	case len(contenders) > 0:
		return contested(contenders)
	case named && name == "":
		return fmt.Sprintf("exists, but its annotation %s is empty: it belongs to no Application", v1alpha1.ApplicationAnnotation)
	case name != "" && name != s.key.Name:
		return "exists, but belongs to Application " + name
	case !s.entry.member.Selects(o.Labels):
		return "exists, but its labels do not match the selector"
	case o.Deleting:
		return "exists, but is being deleted"
	case r.keeper.Problem(o.Ref) != nil:
		return "exists, but cannot be annotated: " + r.keeper.Problem(o.Ref).Error()
	default:
		s.settling = true
		return "exists, and is about to be annotated"
	}
}

func contested(apps []types.NamespacedName) string {
	names := make([]string, 0, len(apps))
	for _, key := range apps {
		names = append(names, key.Name)
	}
	return fmt.Sprintf("exists, but matches Applications %s: set the annotation %s to choose one",
		strings.Join(names, ", "), v1alpha1.ApplicationAnnotation)
}

// notThere returns the status of an object that no watch shows, because it does not exist or its
// kind is not watched.
func (s *scope) notThere(r *Reconciler, ref tracker.Ref, message string) v1alpha1.ComponentStatus {
	state := r.tracker.State(ref.GroupKind)
	switch state.Phase {
	case tracker.Unknown:
		return absent(ref, health.NotFound, state.Err.Error())
	case tracker.ClusterScoped:
		return absent(ref, health.NotFound, "the kind is cluster-scoped: an Application has components in its own namespace only")
	case tracker.Denied:
		s.deny(ref.GroupKind, state.Err)
		return s.outOfSight(ref, state.Err)
	case tracker.Failing:
		return s.outOfSight(ref, state.Err)
	default:
		return absent(ref, health.NotFound, message)
	}
}

// outOfSight returns the status of an object that cannot be seen: whether it is there, and owned, is
// as it was when it could last be seen.
func (s *scope) outOfSight(ref tracker.Ref, why error) v1alpha1.ComponentStatus {
	c, before := absent(ref, health.Unknown, why.Error()), s.unseen[ref]
	c.Installed, c.Owned = before.Installed, before.Owned
	return c
}

func (s *scope) deny(gk schema.GroupKind, why error) {
	if s.denied == nil {
		s.denied = make(map[string]error)
	}
	s.denied[gk.String()] = why
}

func absent(ref tracker.Ref, status health.Status, message string) v1alpha1.ComponentStatus {
	return v1alpha1.ComponentStatus{Group: ref.Group, Kind: ref.Kind, Name: ref.Name, Health: string(status), Message: message}
}

// installed returns the status of a component that exists, or existed when it could last be seen.
func (s *scope) installed(r *Reconciler, o *tracker.Object) v1alpha1.ComponentStatus {
	state := r.tracker.State(o.GroupKind)
	if state.Phase == tracker.Denied {
		s.deny(o.GroupKind, state.Err)
	}
	if state.Phase == tracker.Denied || state.Phase == tracker.Failing {
		c := absent(o.Ref, health.Unknown, state.Err.Error())
		c.Installed, c.Owned = true, refersTo(o, s.app.UID)
		return c
	}
	answer, known := r.healthOf(s.entry, o)
	s.unread = s.unread || !known
	c := v1alpha1.ComponentStatus{
		Group: o.Group, Kind: o.Kind, Name: o.Name, Installed: true,
		Owned: refersTo(o, s.app.UID), Health: string(answer.Status),
	}
	if answer.Status != health.Current {
		c.Message = answer.Message
	}
	if c.Owned || o.Deleting || s.entry.member.Ownership == v1alpha1.OwnershipObserve {
		return c
	}
	problem := r.keeper.Problem(o.Ref)
	switch controller := o.Controller(); {
	case controller != nil: // a component that is owned by another object comes and goes with it
		c.Message = join(c.Message, fmt.Sprintf("is controlled by %s %s: no ownerReference is added", controller.Kind, controller.Name))
	case problem != nil:
		c.Message = join(c.Message, "cannot be owned: "+problem.Error())
		s.refused = graver(s.refused, problem)
	default:
		s.settling = true
		s.unowned++
	}
	return c
}

// graver returns the one of two problems to report: a missing permission, or else the one that
// comes first in the alphabet, so that it is always the same.
func graver(a, b error) error {
	switch {
	case a == nil:
		return b
	case apierrors.IsForbidden(a) != apierrors.IsForbidden(b):
		if apierrors.IsForbidden(a) {
			return a
		}
		return b
	case a.Error() <= b.Error():
		return a
	default:
		return b
	}
}

func join(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

func refersTo(o *tracker.Object, uid types.UID) bool {
	for _, owner := range o.Owners {
		if owner.UID == uid {
			return true
		}
	}
	return false
}

// surveyStale adds objects that are no longer components but still refer to the Application: as
// long as they do, they would be deleted with it. They do not count as components, unless the
// reference cannot be taken off.
func (s *scope) surveyStale(r *Reconciler) {
	for _, o := range s.stale {
		if _, component := s.components[o.Ref]; component {
			continue
		}
		if r.keeper.Problem(o.Ref) == nil {
			s.settling = true
			if _, listed := s.entries[o.Ref]; !listed {
				s.leaving.Insert(o.Ref)
			}
		}
		c := absent(o.Ref, health.Unknown, "is no longer a component: its ownerReference is being removed")
		c.Owned = true
		s.add(c)
	}
}

// lastSeen returns what the last status says of objects that cannot be seen at the moment, with the
// reason as their message. Those that the tracker holds speak for themselves; in a process that has
// just started it holds none, and nothing but the status remembers what is owned.
func (r *Reconciler) lastSeen(s *scope) map[tracker.Ref]v1alpha1.ComponentStatus {
	unseen := make(map[tracker.Ref]v1alpha1.ComponentStatus)
	for _, c := range s.app.Status.Components {
		ref := shownAs(s.key.Namespace, c)
		state := r.tracker.State(ref.GroupKind)
		if c.Name != "" && (state.Phase == tracker.Denied || state.Phase == tracker.Failing) && r.tracker.Get(ref) == nil {
			c.Message = state.Err.Error()
			unseen[ref] = c
		}
	}
	return unseen
}

// keepUnseen keeps owned objects that cannot be seen and are no longer listed, so that their
// references are not forgotten before they are removed.
func (s *scope) keepUnseen() {
	for ref, c := range s.unseen {
		if _, shown := s.entries[ref]; shown || !c.Owned {
			continue
		}
		kept := absent(ref, health.Unknown, "is no longer a component, and its state is unknown: "+c.Message)
		kept.Owned = true
		s.add(kept)
	}
}
