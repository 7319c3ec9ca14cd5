package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// retryDenied is how long after a watch was forbidden it is tried again: it may have been granted in
// the meantime, or an API server that was restarting did not know all rights yet.
const retryDenied = 30 * time.Second

// crdResource is the resource of CustomResourceDefinitions.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Target is one API server accessed with one identity.
type Target interface {
	Metadata() metadata.Interface
	Dynamic() dynamic.Interface
}

// Definitions knows about kinds before discovery does. While at least one waiter, a W, waits for a
// group of kinds, it watches the metadata of all CustomResourceDefinitions, and reads those of the
// group.
type Definitions[W comparable] struct {
	// ctx is the life of the watch, which outlives the calls that start it.
	ctx    context.Context
	target Target
	tell   func([]W)

	mu   sync.Mutex
	feed *Feed[*revision] // nil while there are no waiters
	// filled is true once feed has shown all definitions.
	filled bool
	// versions holds the resource version of each definition, by name.
	versions map[string]string
	// read holds those definitions that were read, by name.
	read map[string]definition
	// waiting holds the waiters to notify of changes, by group.
	waiting map[string]map[W]bool
}

// definition is what is kept of a CustomResourceDefinition.
type definition struct {
	// version is the resource version of the object that this was read from.
	version string
	// served holds the mappings of the versions that are served, by version.
	kind   schema.GroupKind
	served map[string]*meta.RESTMapping
	// established is true if the API server serves the kind; refusal says why it will not.
	established bool
	refusal     string
}

// NewDefinitions returns the definitions of an API server. When a definition changes, tell is
// called from the goroutine of the watch with the waiters for its group. The watch ends with ctx.
func NewDefinitions[W comparable](ctx context.Context, target Target, tell func([]W)) *Definitions[W] {
	return &Definitions[W]{
		ctx:      ctx,
		target:   target,
		tell:     tell,
		versions: make(map[string]string),
		read:     make(map[string]definition),
		waiting:  make(map[string]map[W]bool),
	}
}

// NoDefinitionError means that no definition defines a kind.
type NoDefinitionError struct{ Kind schema.GroupVersionKind }

// NotEstablishedError means that a definition of the kind exists, but the API server does not serve
// it: not yet, or for the reason in Refusal.
type NotEstablishedError struct{ Name, Refusal string }

func (e NoDefinitionError) Error() string {
	return fmt.Sprintf("the API server has no kind %s in %s: install what defines it", e.Kind.Kind, e.Kind.GroupVersion())
}

func (e NotEstablishedError) Error() string {
	if e.Refusal != "" {
		return fmt.Sprintf("CustomResourceDefinition %s is not accepted: %s", e.Name, e.Refusal)
	}
	return fmt.Sprintf("CustomResourceDefinition %s is not established yet", e.Name)
}

// HiddenError means that we are not allowed to read definitions.
type HiddenError struct{ cause error }

func (e HiddenError) Error() string { return e.cause.Error() }
func (e HiddenError) Unwrap() error { return e.cause }

// mapping returns the mapping of the named version, or of the preferred one if named is empty.
func (d definition) mapping(named string) *meta.RESTMapping {
	if named != "" || len(d.served) == 0 {
		return d.served[named]
	}
	return d.served[slices.MaxFunc(slices.Collect(maps.Keys(d.served)), version.CompareKubeAwareVersionStrings)]
}

// Find returns the mapping of a kind that discovery does not know. If it returns an error, w is
// notified when that may have changed.
func (d *Definitions[W]) Find(ctx context.Context, w W, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if err := d.Await(w, gvk.Group).Await(ctx); err != nil {
		return nil, readError("watch CustomResourceDefinitions", err)
	}
	for name, version := range d.ofGroup(gvk.Group) {
		found, err := d.get(ctx, name, version)
		if err != nil {
			return nil, err
		}
		if found.kind != gvk.GroupKind() {
			continue
		}
		mapping := found.mapping(gvk.Version)
		switch {
		case mapping == nil:
			return nil, NoDefinitionError{gvk}
		case !found.established:
			return nil, NotEstablishedError{Name: name, Refusal: found.refusal}
		}
		return mapping, nil
	}
	return nil, NoDefinitionError{gvk}
}

// Defines reports whether any definition of a group is known. If so, changes of the kinds of that
// group are announced.
func (d *Definitions[W]) Defines(group string) bool { return len(d.ofGroup(group)) > 0 }

func readError(doing string, err error) error {
	if apierrors.IsForbidden(err) && !IsImpersonation(err) {
		return HiddenError{err}
	}
	return fmt.Errorf("%s: %w", doing, Stable(err))
}

// Await records that w waits for a group, and returns the feed of the definitions.
func (d *Definitions[W]) Await(w W, group string) *Feed[*revision] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[group] == nil {
		d.waiting[group] = make(map[W]bool)
	}
	d.waiting[group][w] = true
	if d.feed == nil {
		d.start()
	}
	return d.feed
}

// start starts the watch. The caller holds the lock.
func (d *Definitions[W]) start() {
	sink := &definitionSink[W]{definitions: d}
	feed := New(Metadata(d.target.Metadata().Resource(crdResource), "", ""), sink, toRevision)
	sink.feed, d.feed = feed, feed
	feed.OnChange(func(s State) {
		if s.Ended && !errors.Is(s.Err, ErrStopped) {
			sink.again = true
		}
	})
	feed.Retry(retryDenied)
	feed.Start(d.ctx)
}

// Leave removes w from all groups except those given. When there are no waiters left, the watch ends.
func (d *Definitions[W]) Leave(w W, except map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for group, holders := range d.waiting {
		if !except[group] {
			delete(holders, w)
		}
		if len(holders) == 0 {
			delete(d.waiting, group)
		}
	}
	if len(d.waiting) == 0 && d.feed != nil {
		d.feed.End()
		d.feed, d.filled = nil, false
		clear(d.versions)
		clear(d.read)
	}
}

// ofGroup returns the resource versions of the definitions of a group, by name. A definition is
// always named `<plural>.<group>`.
func (d *Definitions[W]) ofGroup(group string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := make(map[string]string)
	for name, version := range d.versions {
		if groupOf(name) == group {
			found[name] = version
		}
	}
	return found
}

func groupOf(definition string) string {
	_, group, _ := strings.Cut(definition, ".")
	return group
}

// get reads a definition unless that version of it was read already.
func (d *Definitions[W]) get(ctx context.Context, name, version string) (definition, error) {
	d.mu.Lock()
	known, found := d.read[name]
	d.mu.Unlock()
	if found && known.version == version {
		return known, nil
	}
	object, err := d.target.Dynamic().Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return definition{}, nil
	}
	if err != nil {
		return definition{}, readError("read CustomResourceDefinition "+name, err)
	}
	read := readDefinition(object)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.feed != nil {
		d.read[name] = read
	}
	return read, nil
}

// readDefinition extracts the relevant parts of a CustomResourceDefinition.
func readDefinition(object *unstructured.Unstructured) definition {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, fields...)
		return value
	}
	scope := meta.RESTScopeNamespace
	if text("spec", "scope") == "Cluster" {
		scope = meta.RESTScopeRoot
	}
	d := definition{
		version: object.GetResourceVersion(),
		kind:    schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")},
		served:  make(map[string]*meta.RESTMapping),
	}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			d.served[name] = &meta.RESTMapping{
				Resource:         schema.GroupVersionResource{Group: d.kind.Group, Version: name, Resource: text("spec", "names", "plural")},
				GroupVersionKind: d.kind.WithVersion(name),
				Scope:            scope,
			}
		}
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		switch {
		case condition["type"] == "Established" && condition["status"] == "True":
			d.established = true
		case condition["type"] == "NamesAccepted" && condition["status"] == "False":
			d.refusal, _ = condition["message"].(string)
		}
	}
	return d
}

// revision is the part of a definition that is watched.
type revision struct{ name, version string }

// GetObjectMeta implements Seen.
func (r *revision) GetObjectMeta() metav1.Object { return &metav1.ObjectMeta{Name: r.name} }

func toRevision(object metav1.Object) *revision {
	return &revision{name: object.GetName(), version: object.GetResourceVersion()}
}

// definitionSink is the sink of one watch on definitions.
type definitionSink[W comparable] struct {
	definitions *Definitions[W]
	feed        *Feed[*revision]
	// again is true if it had given up before: who asked meanwhile got no answer, and has no reason to ask
	// again by itself.
	again bool
}

// Put implements Sink.
func (s *definitionSink[W]) Put(seen *revision) {
	s.definitions.tell(s.definitions.show(s.feed, seen.name, seen.version))
}

// Drop implements Sink.
func (s *definitionSink[W]) Drop(seen *revision) {
	s.definitions.tell(s.definitions.show(s.feed, seen.name, ""))
}

// Replace implements Sink.
func (s *definitionSink[W]) Replace(all []*revision, _ string) {
	d := s.definitions
	d.mu.Lock()
	if d.feed != s.feed {
		d.mu.Unlock()
		return
	}
	gone := maps.Clone(d.versions)
	first := !d.filled && s.feed.State().Err == nil
	d.filled = true
	d.mu.Unlock()
	var concerned []W
	for _, seen := range all {
		delete(gone, seen.name)
		concerned = append(concerned, d.show(s.feed, seen.name, seen.version)...)
	}
	for name := range gone {
		concerned = append(concerned, d.show(s.feed, name, "")...)
	}
	switch {
	case s.again:
		s.again = false
		d.tell(d.everyone())
	case !first: // otherwise the waiters are about to look by themselves
		d.tell(concerned)
	}
}

// everyone returns all waiters.
func (d *Definitions[W]) everyone() []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[W]bool)
	for _, waiters := range d.waiting {
		maps.Copy(all, waiters)
	}
	return slices.Collect(maps.Keys(all))
}

// show records the version of a definition, empty if it is gone, and returns the waiters for its
// group.
func (d *Definitions[W]) show(f *Feed[*revision], name, version string) []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.feed != f || d.versions[name] == version {
		return nil
	}
	d.versions[name] = version
	if version == "" {
		delete(d.versions, name)
		delete(d.read, name)
	}
	return slices.Collect(maps.Keys(d.waiting[groupOf(name)]))
}
