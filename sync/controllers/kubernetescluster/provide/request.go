package provide

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/cluster/watch"
)

const (
	// parallel is how many installations are created at a time in a cluster.
	parallel = 4
	// maxProblem bounds what is repeated of why something could not be created.
	maxProblem = 512
)

func requestKey(name string) string { return "request/" + name }

// request creates what the KubernetesCluster asks for. What fails stays asked for.
func (c *provided) request(ctx context.Context, s *scope) {
	if !s.kc.AsksForInstallations() {
		return
	}
	if text := c.shortened.latest(s.kc); text != "" {
		entries, err := validation.InitialInstallations(text, validation.InitialInstallationsPath())
		if err != nil {
			s.report.invalid("annotation "+v1alpha1.InitialInstallationsAnnotation, err)
		} else if left := c.createAll(ctx, s, entries); len(left) < len(entries) {
			if err := c.try(s, "annotation", text, func() error { return c.shorten(ctx, s.kc, text, left) }); err != nil {
				s.report.failed("annotation "+v1alpha1.InitialInstallationsAnnotation+" cannot be written", err)
			}
		}
	}
	if err := c.take(ctx, s); err != nil {
		s.report.invalid("spec.installationsFrom", err)
	}
}

// shortening is what was written last of the annotation. A cache that is behind still has what was there before:
// installations that were created, and may have been deleted since, are not to be created a second time.
type shortening struct {
	before, after   string
	resourceVersion string // of the KubernetesCluster that was written
}

// latest returns the annotation of a KubernetesCluster.
func (w shortening) latest(kc *v1alpha1.KubernetesCluster) string {
	text := kc.Annotations[v1alpha1.InitialInstallationsAnnotation]
	if text == w.before && watch.Older(kc.ResourceVersion, w.resourceVersion) {
		return w.after
	}
	return text
}

// shorten writes which entries of the annotation are left. If another client has changed it meanwhile,
// the cluster is about to be reconciled again.
func (c *provided) shorten(ctx context.Context, kc *v1alpha1.KubernetesCluster, text string, left []validation.InitialInstallation) error {
	path := "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.InitialInstallationsAnnotation, "/", "~1")
	change := map[string]any{"op": "remove", "path": path}
	if len(left) > 0 {
		raw := make([]json.RawMessage, len(left))
		for i := range left {
			raw[i] = left[i].Raw
		}
		rest, err := json.Marshal(raw)
		if err != nil {
			return err
		}
		change = map[string]any{"op": "replace", "path": path, "value": string(rest)}
	}
	patch, err := json.Marshal([]map[string]any{{"op": "test", "path": path, "value": text}, change})
	if err != nil {
		return err
	}
	written := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: kc.Namespace, Name: kc.Name}}
	err = c.p.Hub.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.shortened = shortening{before: text, after: written.Annotations[v1alpha1.InitialInstallationsAnnotation], resourceVersion: written.ResourceVersion}
	}
	return err
}

// take carries out the list that spec.installationsFrom names, once: which installations it holds is
// recorded before the first one is created, and only what is recorded is ever created.
func (c *provided) take(ctx context.Context, s *scope) error {
	from := s.kc.Spec.InstallationsFrom
	if from == nil {
		return nil
	}
	if c.taken == nil || c.taken.Name != from.Name || c.taken.Key != from.GetKey() {
		c.taken = nil
		if s.kc.HasTaken() {
			c.taken = s.kc.Status.InstallationsTaken.DeepCopy()
		}
	}
	s.report.Taken = c.taken
	if c.taken != nil && len(c.taken.Pending) == 0 {
		return nil
	}
	entries, err := c.listed(ctx, s)
	if err != nil {
		return err
	}
	if c.taken == nil {
		c.taken = &v1alpha1.TakenInstallations{Name: from.Name, Key: from.GetKey(), Pending: names(entries)}
	} else if s.kc.HasTaken() {
		pending := slices.DeleteFunc(entries, func(e validation.InitialInstallation) bool { return !slices.Contains(c.taken.Pending, e.Name) })
		c.taken = &v1alpha1.TakenInstallations{Name: from.Name, Key: from.GetKey(), Pending: names(c.createAll(ctx, s, pending))}
	}
	s.report.Taken = c.taken
	return nil
}

func names(entries []validation.InitialInstallation) []string {
	var all []string
	for i := range entries {
		all = append(all, entries[i].Name)
	}
	return all
}

// listed returns the entries of the list in the ConfigMap.
func (c *provided) listed(ctx context.Context, s *scope) ([]validation.InitialInstallation, error) {
	from, namespace := s.kc.Spec.InstallationsFrom, s.kc.Namespace
	c.p.follow()
	var found *content.Content
	err := c.try(s, "list", from.Name, func() (err error) {
		found, err = c.p.ConfigMaps.Get(ctx, content.ConfigMap, types.NamespacedName{Namespace: namespace, Name: from.Name})
		return client.IgnoreNotFound(err)
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("there is no ConfigMap %q in namespace %q", from.Name, namespace)
	case found.Labels[v1alpha1.ValuesLabel] != v1alpha1.ValuesProtected:
		return nil, fmt.Errorf("ConfigMap %q lacks the label %s: %s, so others than those who may install could change it", from.Name, v1alpha1.ValuesLabel, v1alpha1.ValuesProtected)
	}
	text, ok := found.Data[from.GetKey()]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %q has no key %q", from.Name, from.GetKey())
	}
	entries, err := validation.InitialInstallations(string(text), field.NewPath("data").Key(from.GetKey()))
	if err != nil {
		return nil, fmt.Errorf("key %q of ConfigMap %q %w", from.GetKey(), from.Name, err)
	}
	return entries, nil
}

// createAll creates the installations, and returns those that do not exist yet. Each is tried, whatever
// comes of the others.
func (c *provided) createAll(ctx context.Context, s *scope, entries []validation.InitialInstallation) []validation.InitialInstallation {
	failures := make([]error, len(entries))
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for i := range entries {
		group.Go(func() error {
			failures[i] = c.ensure(ctx, s, &entries[i])
			return nil
		})
	}
	_ = group.Wait() // failures has them
	c.asked = c.asked || len(entries) > 0
	var left []validation.InitialInstallation
	for i, err := range failures {
		if err != nil {
			left = append(left, entries[i])
			s.report.failed(entries[i].Name, err)
		}
	}
	return left
}

// errBeingDeleted means that an installation goes, and another one is to take its place.
var errBeingDeleted = errors.New("an installation of that name is being deleted")

// ensure creates an installation unless it exists. One that exists is left as it is.
func (c *provided) ensure(ctx context.Context, s *scope, entry *validation.InitialInstallation) error {
	if len(entry.Errors) > 0 {
		return entry.Errors.ToAggregate()
	}
	live := &v1alpha1.ApplicationInstallation{}
	err := c.cluster.Client().Get(ctx, client.ObjectKeyFromObject(entry.Object), live)
	wanted := entry.Object.Spec.ApplicationRef
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil: // there is none
	case !live.DeletionTimestamp.IsZero():
		return errBeingDeleted
	case live.Spec.ApplicationRef.Name != wanted.Name:
		return fmt.Errorf("an installation of that name exists already, of ApplicationDefinition %q", live.Spec.ApplicationRef.Name)
	default:
		return nil
	}
	definition, err := c.definition(ctx, wanted.Name)
	if err != nil {
		return err
	}
	if err := validation.ValidateInitialReference(entry.Object, definition, s.kc); err != nil {
		return err
	}
	sum := sha256.Sum256(entry.Raw)
	return c.try(s, requestKey(entry.Name), hex.EncodeToString(sum[:]), func() error { return c.create(ctx, entry.Object) })
}

// definition returns a definition of the hub's catalog; nil if there is none. What another hub copied here
// for its own user cluster is not in it.
func (c *provided) definition(ctx context.Context, name string) (*v1alpha1.ApplicationDefinition, error) {
	found := &v1alpha1.ApplicationDefinition{}
	err := c.p.Hub.Get(ctx, client.ObjectKey{Name: name}, found, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !found.InCatalog() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get definition: %w", err)
	}
	return found, nil
}

// create creates an installation, and its namespace if there is none.
func (c *provided) create(ctx context.Context, obj *v1alpha1.ApplicationInstallation) error {
	owner := client.FieldOwner(v1alpha1.FieldManager)
	err := c.cluster.Client().Create(ctx, obj.DeepCopy(), owner)
	if lacksNamespace(err) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: obj.Namespace}}
		if err := c.cluster.Client().Create(ctx, namespace, owner); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
		err = c.cluster.Client().Create(ctx, obj.DeepCopy(), owner)
	}
	return err
}

func lacksNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}
