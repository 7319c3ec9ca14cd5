package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// crdKind and crdResource are the kind that defines kinds.
var (
	crdKind     = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	crdResource = schema.GroupVersionResource{Group: crdKind.Group, Version: "v1", Resource: "customresourcedefinitions"}
)

// definitions knows of kinds before discovery does. As long as somebody waits for
// a kind, the metadata of CustomResourceDefinitions are watched, and those of the
// group that is waited for are read.
type definitions struct {
	applier *Applier

	mu   sync.Mutex
	feed *feed // nil while nobody waits
	// filled: feed has shown all there is once.
	filled bool
	// versions has the resource version of each definition, by name.
	versions map[string]string
	// read has what was read of some of them.
	read map[string]definition
	// waiting are to be told of changes, by group.
	waiting map[string]map[*holder]bool
}

// definition is what is kept of a CustomResourceDefinition.
type definition struct {
	// version of the object that this was read from.
	version string
	// served are the mappings of the versions that are served, by version.
	kind   schema.GroupKind
	served map[string]*meta.RESTMapping
	// established: the API server serves it. refusal says why it will not.
	established bool
	refusal     string
}

func newDefinitions(a *Applier) *definitions {
	return &definitions{
		applier:  a,
		versions: make(map[string]string),
		read:     make(map[string]definition),
		waiting:  make(map[string]map[*holder]bool),
	}
}

// noDefinitionError says that nothing defines a kind, notEstablishedError that
// something does and the API server does not serve it, or not yet.
type (
	noDefinitionError   struct{ kind schema.GroupVersionKind }
	notEstablishedError struct{ name, refusal string }
)

func (e noDefinitionError) Error() string {
	return fmt.Sprintf("the API server has no kind %s in %s: install what defines it", e.kind.Kind, e.kind.GroupVersion())
}

func (e notEstablishedError) Error() string {
	if e.refusal != "" {
		return fmt.Sprintf("CustomResourceDefinition %s is not accepted: %s", e.name, e.refusal)
	}
	return fmt.Sprintf("CustomResourceDefinition %s is not established yet", e.name)
}

// hiddenError says that definitions may not be read.
type hiddenError struct{ cause error }

func (e hiddenError) Error() string { return e.cause.Error() }
func (e hiddenError) Unwrap() error { return e.cause }

// find returns how a kind is called that discovery does not know. Where it returns
// an error, the holder is told when that may have changed.
func (d *definitions) find(ctx context.Context, h *holder, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if err := d.await(h, gvk.Group).await(ctx); err != nil {
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
		mapping := found.served[gvk.Version]
		switch {
		case mapping == nil:
			return nil, noDefinitionError{gvk}
		case !found.established:
			return nil, notEstablishedError{name: name, refusal: found.refusal}
		}
		return mapping, nil
	}
	return nil, noDefinitionError{gvk}
}

func readError(doing string, err error) error {
	if apierrors.IsForbidden(err) && !isImpersonation(err) {
		return hiddenError{err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// await notes who waits for a group, and returns the watch that tells.
func (d *definitions) await(h *holder, group string) *feed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[group] == nil {
		d.waiting[group] = make(map[*holder]bool)
	}
	d.waiting[group][h] = true
	if d.feed == nil || d.feed.ended() && !d.feed.refused(retryDenied) {
		d.feed = newFeed(everywhere, metadataSource(d.applier.target.Metadata().Resource(crdResource), "", ""), d)
		d.feed.start(d.applier.ctx)
	}
	return d.feed
}

// leave has a holder wait for nothing but some groups. When nobody waits any more,
// nothing is watched either.
func (d *definitions) leave(h *holder, except map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for group, holders := range d.waiting {
		if !except[group] {
			delete(holders, h)
		}
		if len(holders) == 0 {
			delete(d.waiting, group)
		}
	}
	if len(d.waiting) == 0 && d.feed != nil {
		d.feed.end()
		d.feed, d.filled = nil, false
		clear(d.versions)
		clear(d.read)
	}
}

// ofGroup returns the definitions of a group, name and resource version. A
// definition is always called `<plural>.<group>`.
func (d *definitions) ofGroup(group string) map[string]string {
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

// get reads a definition, unless it was read at that version already.
func (d *definitions) get(ctx context.Context, name, version string) (definition, error) {
	d.mu.Lock()
	known, found := d.read[name]
	d.mu.Unlock()
	if found && known.version == version {
		return known, nil
	}
	object, err := d.applier.target.Dynamic().Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
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

// readDefinition keeps what matters of a CustomResourceDefinition.
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

// put implements sink.
func (d *definitions) put(f *feed, seen *observed) {
	d.applier.tell(d.show(f, seen.name.Name, seen.live.version))
}

// drop implements sink.
func (d *definitions) drop(f *feed, seen *observed) {
	d.applier.tell(d.show(f, seen.name.Name, ""))
}

// replace implements sink.
func (d *definitions) replace(f *feed, all []*observed, _ string) {
	d.mu.Lock()
	if d.feed != f {
		d.mu.Unlock()
		return
	}
	gone := maps.Clone(d.versions)
	first := !d.filled && f.failure() == nil
	d.filled = true
	d.mu.Unlock()
	var concerned []*holder
	for _, seen := range all {
		delete(gone, seen.name.Name)
		concerned = append(concerned, d.show(f, seen.name.Name, seen.live.version)...)
	}
	for name := range gone {
		concerned = append(concerned, d.show(f, name, "")...)
	}
	if !first { // else those who wait are about to look by themselves
		d.applier.tell(concerned)
	}
}

// show takes in the version of a definition, empty where it is gone, and returns
// those who wait for its group.
func (d *definitions) show(f *feed, name, version string) []*holder {
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
