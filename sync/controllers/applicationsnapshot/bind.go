package applicationsnapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// contentName returns the name of the content that the snapshot is bound to, or will be.
func (s *scope) contentName() string {
	if s.obj.Spec.SnapshotContentName != "" {
		return s.obj.Spec.SnapshotContentName
	}
	return "snapcontent-" + string(s.obj.UID)
}

// bound reports whether a content is bound to the snapshot.
func (s *scope) bound(content *v1alpha1.ApplicationSnapshotContent) bool {
	ref := content.Spec.SnapshotRef
	return ref != nil && ref.UID == string(s.obj.UID) && ref.Namespace == s.obj.Namespace && ref.Name == s.obj.Name
}

// bind creates the content, or binds the snapshot to one that exists.
func (s *scope) bind(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	if err := s.commit(ctx); err != nil {
		return "", err
	}
	var content *v1alpha1.ApplicationSnapshotContent
	var err error
	if s.obj.Spec.Source.Type == "" {
		content, err = s.bindExisting(ctx)
	} else {
		content, err = s.createContent(ctx)
	}
	if err != nil {
		return "", err
	}
	s.obj.Status.BoundSnapshotContentName = content.Name
	s.obj.Status.CompletionTime = ptr.To(metav1.Now())
	return v1alpha1.SnapshotReady, nil
}

// createContent creates the content, with what is known of it.
func (s *scope) createContent(ctx context.Context) (*v1alpha1.ApplicationSnapshotContent, error) {
	known, err := s.summary(ctx)
	if err != nil {
		return nil, err
	}
	refs, err := s.references(ctx)
	if err != nil {
		return nil, err
	}
	content := &v1alpha1.ApplicationSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: s.contentName(), Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.ApplicationSnapshotContentSpec{
			SnapshotClassName:  s.obj.Spec.SnapshotClassName,
			SnapshotRef:        &v1alpha1.NamespacedReference{Namespace: s.obj.Namespace, Name: s.obj.Name, UID: string(s.obj.UID)},
			VolumeSnapshotRefs: refs,
			Tags:               s.tags(),
			MetadataHandle:     s.obj.Status.Metadata,
			DeletionPolicy:     s.obj.Status.Plan.DeletionPolicy,
		},
	}
	if content.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain {
		if err := s.r.volumes.Retain(ctx, refs); err != nil {
			return nil, err
		}
	}
	err = s.r.Client.Create(ctx, content)
	if apierrors.IsAlreadyExists(err) {
		if err = s.r.Direct.Get(ctx, client.ObjectKeyFromObject(content), content); err == nil && !s.bound(content) {
			return nil, kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q was created concurrently by another client", content.Name)
		}
	}
	if err != nil {
		return nil, refused(v1alpha1.ContentConflictReason, fmt.Errorf("create ApplicationSnapshotContent %q: %w", content.Name, err))
	}
	return content, s.describe(ctx, content, known)
}

// summary is what a content says of the definitions, for those who may not read them.
type summary struct {
	kinds      []string
	definition string
	// application is the name of the Application.
	application string
}

// summary returns that of the definitions that are stored.
func (s *scope) summary(ctx context.Context) (*summary, error) {
	if s.session.summary == nil {
		objects, err := s.r.Store.Load(ctx, *s.obj.Status.Metadata)
		if err != nil {
			return nil, hopeless(err)
		}
		s.session.summary = s.summarize(objects)
	}
	return s.session.summary, nil
}

func (s *scope) summarize(objects []*unstructured.Unstructured) *summary {
	found := &summary{kinds: kindsOf(objects, s.r.cluster.RESTMapper())}
	if !slices.ContainsFunc(objects, isSource) { // which may become values of other installations
		found.definition = restore.Installed(objects)
	}
	if i := slices.IndexFunc(objects, isApplication); i >= 0 {
		found.application = objects[i].GetName()
	}
	return found
}

// describe writes the status of the content: what is known of the snapshot, and of nothing else. That it is bound is
// known, too, so that the content's own controller has nothing to add.
func (s *scope) describe(ctx context.Context, content *v1alpha1.ApplicationSnapshotContent, known *summary) error {
	pass := s.r.contents.Begin(s.r.Client, s.r.Recorder, content)
	content.Status.Consistency = s.obj.Status.Consistency
	content.Status.CreationTime = s.obj.Status.CreationTime
	content.Status.ApplicationName = s.obj.Spec.Source.ApplicationName
	content.Status.Kinds, content.Status.Definition = known.kinds, known.definition
	content.Status.ObservedGeneration = content.Generation
	conditions.MarkTrue(content, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s", boundBy(content.Spec.SnapshotRef))
	if err := pass.Write(ctx); err != nil {
		return fmt.Errorf("describe ApplicationSnapshotContent %q: %w", content.Name, err)
	}
	return nil
}

// references returns the VolumeSnapshots by claim.
func (s *scope) references(ctx context.Context) (map[string]v1alpha1.NamespacedReference, error) {
	now, states, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	refs := map[string]v1alpha1.NamespacedReference{}
	for i, v := range now {
		refs[v.Claim] = v1alpha1.NamespacedReference{Namespace: s.obj.Namespace, Name: v.VolumeSnapshot, UID: string(states[i].UID)}
	}
	return refs, nil
}

// tags returns those of the snapshot, and those that pre-hooks printed: the former win.
func (s *scope) tags() map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, s.obj.Status.Tags)
	maps.Copy(tags, s.obj.Spec.Tags)
	return tags
}

// kindsOf returns the kinds of objects, and those that an Application among them lists, as RESOURCE.GROUP:
// a restored Application may own objects of kinds of which the snapshot holds none. Sources of values count as
// installations. Of a kind that is not
// served any more, it guesses the resource.
func kindsOf(objects []*unstructured.Unstructured, mapper meta.RESTMapper) []string {
	found := map[string]bool{}
	add := func(kind schema.GroupKind) {
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		if mapping, err := mapper.RESTMapping(kind); err == nil {
			resource = mapping.Resource
		}
		found[resource.GroupResource().String()] = true
	}
	for _, o := range objects {
		if add(o.GroupVersionKind().GroupKind()); isSource(o) {
			add(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind})
		}
		if !isApplication(o) {
			continue
		}
		app := &v1alpha1.Application{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, app) != nil {
			continue // it cannot be created either
		}
		for _, component := range app.Spec.Components {
			add(schema.GroupKind{Group: component.Group, Kind: component.Kind})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func isApplication(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()
	return kind.Group == v1alpha1.Group && kind.Kind == v1alpha1.ApplicationKind
}

// isSource reports whether installations take values from an object: writing it is as good as installing.
func isSource(o *unstructured.Unstructured) bool {
	return o.GetLabels()[v1alpha1.ValuesLabel] == v1alpha1.ValuesProtected
}

// bindExisting binds the snapshot to a content that waits for one.
func (s *scope) bindExisting(ctx context.Context) (*v1alpha1.ApplicationSnapshotContent, error) {
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.r.Direct.Get(ctx, types.NamespacedName{Name: s.contentName()}, content)
	if apierrors.IsNotFound(err) {
		return nil, kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q does not exist", s.contentName())
	}
	if err != nil {
		return nil, fmt.Errorf("get ApplicationSnapshotContent %q: %w", s.contentName(), err)
	}
	if err := s.mayBind(content); err != nil {
		return nil, err
	}
	s.obj.Status.Metadata = content.Spec.MetadataHandle
	var known *summary
	if len(content.Status.Kinds) == 0 { // an administrator has created it
		if known, err = s.summary(ctx); err != nil {
			return nil, err // before it is bound, for good
		}
	}
	if !s.bound(content) {
		before := content.DeepCopy()
		content.Spec.SnapshotRef = &v1alpha1.NamespacedReference{Namespace: s.obj.Namespace, Name: s.obj.Name, UID: string(s.obj.UID)}
		// Who else binds it at this moment is refused, or we are.
		err := s.r.Client.Patch(ctx, content, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return nil, fmt.Errorf("bind ApplicationSnapshotContent %q: %w", content.Name, err)
		}
	}
	s.obj.Status.Consistency, s.obj.Status.CreationTime = content.Status.Consistency, content.Status.CreationTime
	return content, s.describeExisting(ctx, content, known)
}

// describeExisting writes into the status of a content what only the definitions tell, unless it is there: the
// rest is for the content's own controller to write.
func (s *scope) describeExisting(ctx context.Context, content *v1alpha1.ApplicationSnapshotContent, known *summary) error {
	if known == nil {
		return nil
	}
	name, err := s.protects(ctx, known.application)
	if err != nil {
		return err
	}
	pass := s.r.contents.Begin(s.r.Client, s.r.Recorder, content)
	content.Status.ApplicationName = name
	content.Status.Kinds, content.Status.Definition = known.kinds, known.definition
	if err := pass.Write(ctx); err != nil {
		return fmt.Errorf("describe ApplicationSnapshotContent %q: %w", content.Name, err)
	}
	return nil
}

// protects returns the name of the StatefulApplication of an Application; that of the Application, as is usual,
// if there is none.
func (s *scope) protects(ctx context.Context, application string) (string, error) {
	all := &v1alpha1.StatefulApplicationList{}
	if err := s.r.Client.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return "", fmt.Errorf("list StatefulApplications: %w", err)
	}
	for _, app := range all.Items {
		if cmp.Or(app.Spec.ApplicationName, app.Name) == application {
			return app.Name, nil
		}
	}
	return application, nil
}

// mayBind fails if a content is of another class, or for another snapshot.
func (s *scope) mayBind(content *v1alpha1.ApplicationSnapshotContent) error {
	ref := content.Spec.SnapshotRef
	switch {
	case !content.DeletionTimestamp.IsZero():
		return kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q is being deleted", content.Name)
	case content.Spec.SnapshotClassName != s.obj.Spec.SnapshotClassName:
		return kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q is of ApplicationSnapshotClass %q, but spec.snapshotClassName is %q",
			content.Name, content.Spec.SnapshotClassName, s.obj.Spec.SnapshotClassName)
	case content.Spec.MetadataHandle == nil:
		return kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q has no metadataHandle: there is nothing to restore", content.Name)
	case ref == nil, s.bound(content), ref.UID == "" && ref.Namespace == s.obj.Namespace && ref.Name == s.obj.Name:
		return nil
	}
	// Which one it is for, not every user may know.
	return kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q is for another ApplicationSnapshot", content.Name)
}
