package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/manifest"
)

// keep leaves an object in the cluster that may no longer be wanted, and says why.
func (r *run) keep(id manifest.ID, format string, args ...any) {
	r.left = append(r.left, id)
	r.warnings = append(r.warnings, manifest.Problem{ID: id, Reason: ReasonPruneHeld, Message: "not deleted: " + fmt.Sprintf(format, args...)})
}

// doubts are manifests that may describe an object which no other manifest describes.
type doubts struct {
	// named has those whose name is known, by that name.
	named map[string][]doubt
	// unnamed are those that have another part of their identity, and unidentified those of which nothing
	// is known: they may describe anything.
	unnamed, unidentified []doubt
}

// doubt is one such manifest.
type doubt struct {
	manifest.Problem
	// of is what the manifest says of its identity.
	of manifest.ID
	// why says what is the matter with it.
	why string
}

// doubtsOf returns doubts about what could not be read.
func doubtsOf(unread []manifest.Problem) *doubts {
	d := &doubts{named: make(map[string][]doubt)}
	for _, p := range unread {
		d.add(p, "which cannot be read, may describe it")
	}
	return d
}

// await adds a manifest of an object whose kind or namespace does not exist: a kind that is not served may be
// misspelled, and a namespace that does not exist too.
func (d *doubts) await(p manifest.Problem) {
	one := doubt{Problem: p, of: p.ID, why: "which waits for its kind or namespace, may replace it"}
	one.ID = manifest.ID{Name: p.ID.Name}
	d.named[p.ID.Name] = append(d.named[p.ID.Name], one)
}

func (d *doubts) add(p manifest.Problem, why string) {
	one := doubt{Problem: p, of: p.ID, why: why}
	switch {
	case !p.Identifies():
		d.unidentified = append(d.unidentified, one)
	case p.ID.Name == "":
		d.unnamed = append(d.unnamed, one)
	default:
		d.named[p.ID.Name] = append(d.named[p.ID.Name], one)
	}
}

// about returns a manifest that may describe an object, apart from those that may describe anything; nil if
// there is none.
func (d *doubts) about(id manifest.ID) *doubt {
	for _, list := range [][]doubt{d.named[id.Name], d.unnamed} {
		for i := range list {
			if list[i].MayBe(id) {
				return &list[i]
			}
		}
	}
	return nil
}

// place names the manifest, for a message.
func (d *doubt) place() string {
	if d.File != "" {
		return manifest.Object{File: d.File, Line: d.Line}.Place()
	}
	return d.of.String()
}

// doubts returns what could not be read, and what is not known well enough yet to determine which
// object it is.
func (r *run) doubts() *doubts {
	found := doubtsOf(r.request.Unread)
	for _, it := range r.items {
		if it.problem == nil && !it.waiting {
			continue
		}
		p := manifest.Problem{ID: it.shown(), File: it.manifest.File, Line: it.manifest.Line}
		if it.kind == nil || it.id.Name == "" {
			found.add(p, "which cannot be applied, may describe it")
		}
		if it.waiting || it.problem.Reason == ReasonKindNotFound {
			p.ID.Name = it.id.Name
			found.await(p)
		}
	}
	return found
}

// holdUnread keeps what may be wanted: what cannot be read may describe it. It returns the rest. What a
// manifest surely describes is wanted, and needs no words: that manifest has a problem of its own.
func (r *run) holdUnread(stale []manifest.ID) []manifest.ID {
	in := r.doubts()
	var rest []manifest.ID
	for _, id := range stale {
		switch one := in.about(id); {
		case one == nil:
			rest = append(rest, id)
		case one.isOf(id, r.request.DefaultNamespace):
			r.left = append(r.left, id)
		case len(in.unidentified) == 0:
			r.keep(id, "%s, %s", one.place(), one.why)
		default:
			rest = append(rest, id)
		}
	}
	if len(in.unidentified) == 0 || len(rest) == 0 {
		return rest
	}
	r.left = append(r.left, rest...)
	one := in.unidentified[0]
	stay := "1 object stays that is in no other manifest"
	if len(rest) > 1 {
		stay = fmt.Sprintf("%d objects stay that are in no other manifest", len(rest))
	}
	r.warnings = append(r.warnings, manifest.Problem{
		File: one.File, Line: one.Line, Reason: ReasonPruneHeld, Message: "nothing is deleted until it is corrected: " + stay,
	})
	return nil
}

// isOf reports whether the manifest describes the object and no other.
func (d *doubt) isOf(id manifest.ID, defaultNamespace string) bool {
	known := d.ID
	if known.Namespace == "" && id.Namespace == defaultNamespace {
		known.Namespace = defaultNamespace
	}
	return known.Version != "" && known.Key() == id.Key()
}

// stuck returns what was delivered, is wanted, and is as it was before: its manifest could not be read
// or applied.
func (r *run) stuck() []manifest.ID {
	ids := slices.Clone(r.left)
	for _, it := range r.items {
		if it.undone() && r.delivered[it.id.Key()] {
			ids = append(ids, it.id)
		}
	}
	return ids
}

// isReferred reports whether objects of a kind are there for others to name them.
func isReferred(id manifest.ID) bool {
	return id.Group == corev1.GroupName && slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"}, id.Kind)
}

// refers reports whether objects of a kind may name others in their content.
func refers(id manifest.ID) bool {
	return id.Group != corev1.GroupName || id.Kind != "ConfigMap" && id.Kind != "Secret"
}

// holdUsed keeps what an object that stays as it was before still refers to. The names of generated
// ConfigMaps, for example, change with their content: what could not be applied still needs the one
// before.
func (r *run) holdUsed(ctx context.Context) {
	names := make(map[string]map[string]bool) // by namespace
	for _, rm := range r.removals {
		if isReferred(rm.id) && !rm.done {
			if names[rm.id.Namespace] == nil {
				names[rm.id.Namespace] = make(map[string]bool)
			}
			names[rm.id.Namespace][rm.id.Name] = true
		}
	}
	var users []*user
	for _, id := range r.stuck() {
		if len(names[id.Namespace]) > 0 && refers(id) {
			users = append(users, &user{id: id, names: make(map[string]bool)})
		}
	}
	each(ctx, r, users, func(ctx context.Context, u *user) { r.readUser(ctx, u, names[u.id.Namespace]) })
	r.removals = slices.DeleteFunc(r.removals, func(rm *removal) bool {
		i := slices.IndexFunc(users, func(u *user) bool {
			return isReferred(rm.id) && u.id.Namespace == rm.id.Namespace && (u.unknown || u.names[rm.id.Name])
		})
		if i >= 0 {
			r.keep(rm.id, "%s, which could not be applied, may still use it", users[i].id)
		}
		return i >= 0
	})
}

// user is an object that stays as it was before.
type user struct {
	id manifest.ID
	// names has those of the names looked for that it has somewhere; unknown means that it could not be
	// read.
	names   map[string]bool
	unknown bool
}

// readUser looks for names in an object.
func (r *run) readUser(ctx context.Context, u *user, names map[string]bool) {
	k, err := r.removalKind(ctx, u.id)
	if k == nil {
		u.unknown = err != nil
		return
	}
	live, err := r.as(u.id).Dynamic().Resource(k.gvr).Namespace(u.id.Namespace).Get(ctx, u.id.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		find(live, names, u.names)
	case !apierrors.IsNotFound(err) || watch.IsKindNotFound(err):
		u.unknown = true
		if failure := r.failureOf(k, err); failure != nil {
			r.fail(failure)
		}
	}
}

// find adds to found those of some names that an object has in its content.
func find(live *unstructured.Unstructured, names, found map[string]bool) {
	for field, value := range live.Object {
		if field != "metadata" && field != "status" {
			findIn(value, names, found)
		}
	}
}

func findIn(value any, names, found map[string]bool) {
	switch value := value.(type) {
	case string:
		if names[value] {
			found[value] = true
		}
	case []any:
		for _, v := range value {
			findIn(v, names, found)
		}
	case map[string]any:
		for _, v := range value {
			findIn(v, names, found)
		}
	}
}

// holdFoundations keeps the Namespaces and the CustomResourceDefinitions of what stays for now.
func (r *run) holdFoundations() {
	stuck := foundationsOf(r.stuck())
	r.removals = slices.DeleteFunc(r.removals, func(rm *removal) bool {
		stays, found := stuck.under(rm.id)
		if found {
			r.keep(rm.id, "%s stays for now, and would be deleted with it", stays)
		}
		return found
	})
}

// foundations are the Namespaces and the API groups of objects that stay, by name: deleting a Namespace, or a
// CustomResourceDefinition of the group, would delete the object too.
type foundations struct{ spaces, groups map[string]manifest.ID }

func foundationsOf(stay []manifest.ID) foundations {
	f := foundations{spaces: make(map[string]manifest.ID), groups: make(map[string]manifest.ID)}
	for _, id := range stay {
		f.spaces[id.Namespace], f.groups[id.Group] = id, id
	}
	return f
}

// under returns an object that would be deleted with another one.
func (f foundations) under(id manifest.ID) (stays manifest.ID, found bool) {
	switch {
	case isDefinition(id):
		_, group, _ := strings.Cut(id.Name, ".")
		stays, found = f.groups[group]
	case id.GroupVersionKind().GroupKind() == namespaceKind:
		stays, found = f.spaces[id.Name]
	}
	return stays, found
}

// isDefinition reports whether an object defines a kind.
func isDefinition(id manifest.ID) bool { return id.Group == crdKind.Group && id.Kind == crdKind.Kind }
