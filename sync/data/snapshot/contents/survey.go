package contents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

// Bounds of the contents of an application.
const (
	maxObjects = 5_000
	maxBytes   = 64 << 20
	// maxValues of all objects: 100 MB in memory at the most.
	maxValues = 1_000_000
)

// id names an object of the namespace.
type id struct {
	schema.GroupKind
	name string
}

func idOf(o *unstructured.Unstructured) id {
	return id{o.GroupVersionKind().GroupKind(), o.GetName()}
}

// survey is one search for the contents of an application. Steps fill it one after the other.
type survey struct {
	*Finder
	namespace string

	application *unstructured.Unstructured
	// objects are those found so far, claims among them, but not the Application itself. byUID has the
	// same.
	objects map[id]Object
	byUID   map[types.UID]id
	size    expansion.Size
	left    map[id]Left
	// asked are objects that were named and looked for.
	asked sets.Set[id]

	// applications are the Application, and those among its components.
	applications []*membership.Application
	// members has the same and, once allMembers is set, all others of the namespace.
	members    *membership.Index
	allMembers bool

	// owners has, for each kind that was asked for, the controllers of its objects; nil where there is none.
	owners map[schema.GroupKind]map[types.UID]*metav1.OwnerReference

	pods []corev1.Pod
	// mounted are the names of Pods by the claims that they mount.
	mounted map[string][]string
	// uses are what Pods and Pod templates name.
	uses []use
	// series are the claims of volumeClaimTemplates.
	series []claimSeries
	// accounts are the names of ServiceAccounts that Pods run as.
	accounts sets.Set[string]
	claims   []Claim

	installation *unstructured.Unstructured
}

func newSurvey(f *Finder, namespace string) *survey {
	return &survey{
		Finder: f, namespace: namespace,
		objects: map[id]Object{}, byUID: map[types.UID]id{}, left: map[id]Left{},
		members: &membership.Index{}, owners: map[schema.GroupKind]map[types.UID]*metav1.OwnerReference{},
		accounts: sets.New[string](), asked: sets.New[id](),
		mounted: map[string][]string{},
	}
}

// start reads the Application.
func (s *survey) start(ctx context.Context, name string) error {
	app, err := s.get(ctx, applicationKind, name)
	if err != nil {
		return err
	}
	s.application = app
	app.SetManagedFields(nil)
	return s.weigh(app)
}

// add adds an object, unless it is there, or is one that no snapshot holds.
func (s *survey) add(o *unstructured.Unstructured, reason string) error {
	key := idOf(o)
	if _, there := s.objects[key]; there || key == idOf(s.application) {
		return nil
	}
	if why := unwanted(o); why != "" {
		s.leave(key, why)
		return nil
	}
	o.SetManagedFields(nil)
	if err := s.weigh(o); err != nil {
		return err
	}
	s.objects[key] = Object{Unstructured: o, Reason: reason}
	s.byUID[o.GetUID()] = key
	return nil
}

// weigh counts an object.
func (s *survey) weigh(o *unstructured.Unstructured) error {
	s.size.Add(o.Object)
	const narrow = "narrow spec.components or spec.selector of the Application"
	switch {
	case len(s.objects) >= maxObjects:
		return fmt.Errorf("%w: more than %d objects belong to it: %s", ErrTooLarge, maxObjects, narrow)
	case s.size.Bytes > maxBytes || s.size.Values > maxValues:
		return fmt.Errorf("%w: its objects have more than %d MiB, or %d values: %s", ErrTooLarge, maxBytes>>20, maxValues, narrow)
	}
	return nil
}

// leave records an object that is left out.
func (s *survey) leave(key id, reason string) { s.record(key, reason, false) }

// miss records an object that does not exist.
func (s *survey) miss(key id, reason string) { s.record(key, reason, true) }

func (s *survey) record(key id, reason string, missing bool) {
	if _, there := s.left[key]; there || len(s.left) >= maxObjects {
		return
	}
	s.left[key] = Left{
		ObjectReference: v1alpha1.ObjectReference{Group: key.Group, Kind: key.Kind, Namespace: s.namespace, Name: key.name},
		Missing:         missing, Reason: reason,
	}
}

// fetch adds an object that something names. One that does not exist is recorded, unless it is optional
// for all that name it.
func (s *survey) fetch(ctx context.Context, key id, reason string, optional bool) error {
	_, there := s.objects[key]
	left, known := s.left[key]
	if there || known && !left.Missing {
		return nil
	}
	missed := reason + ": does not exist"
	if s.asked.Has(key) {
		if !optional {
			s.miss(key, missed)
		}
		return nil
	}
	s.asked.Insert(key)
	if len(s.asked) > maxObjects {
		return fmt.Errorf("%w: its Pods name more than %d objects", ErrTooLarge, maxObjects)
	}
	o, err := s.get(ctx, key.GroupKind, key.name)
	missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
	switch {
	case missing && optional:
		return nil
	case missing:
		s.miss(key, missed)
		return nil
	case err != nil:
		return err
	}
	return s.add(o, reason)
}

// contents returns what was found.
func (s *survey) contents() *Contents {
	c := &Contents{Application: s.application, Installation: s.installation, Pods: s.pods, Mounted: s.mounted, Claims: s.claims}
	for _, key := range s.sorted() {
		if key.GroupKind != claimKind {
			c.Objects = append(c.Objects, s.objects[key])
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.left), compare) {
		if _, found := s.objects[key]; !found {
			c.Left = append(c.Left, s.left[key])
		}
	}
	return c
}

// sorted returns the objects found so far.
func (s *survey) sorted() []id { return slices.SortedFunc(maps.Keys(s.objects), compare) }

func compare(a, b id) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.name, b.name))
}

// get reads one object of the namespace.
func (s *survey) get(ctx context.Context, kind schema.GroupKind, name string) (*unstructured.Unstructured, error) {
	mapping, err := s.Mapper.RESTMapping(kind)
	if err != nil {
		return nil, fmt.Errorf("get %s %q in namespace %q: %w", kind.Kind, name, s.namespace, err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
		return nil, fmt.Errorf("get %s %q in namespace %q: %w", kind.Kind, name, s.namespace, err)
	}
	return o, nil
}

// page is how many objects are read at once: some may have more than 1 MiB.
const page = 25

// list reads the objects of a kind in the namespace, page by page.
func (s *survey) list(ctx context.Context, gvk schema.GroupVersionKind, each func(*unstructured.Unstructured) error, options ...client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	for token := ""; ; {
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := s.Reader.List(ctx, list, append(options, client.InNamespace(s.namespace), client.Limit(page), client.Continue(token))...)
		if err != nil {
			return fmt.Errorf("list %s in namespace %q: %w", gvk.GroupKind(), s.namespace, err)
		}
		for i := range list.Items {
			if err := each(&list.Items[i]); err != nil {
				return err
			}
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
		list = &unstructured.UnstructuredList{}
	}
}
