package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
)

// Session works on the installations of one cluster, for the command line and the dashboard alike.
type Session struct {
	fleet.Place

	client client.Client
}

// NewSession returns a session at a place.
func NewSession(at fleet.Place) (*Session, error) {
	c, err := at.Target.Client()
	if err != nil {
		return nil, err
	}
	return &Session{Place: at, client: c}, nil
}

// NameOf returns an installation as arguments name it, with its namespace, and its cluster if the user
// named that.
func (s *Session) NameOf(inst *v1alpha1.ApplicationInstallation) string {
	return s.Describe(v1alpha1.ApplicationInstallationKind, inst.Namespace, inst.Name)
}

// Create creates an installation, and sets it to what the API server has stored, or would store in a dry run.
func (s *Session) Create(ctx context.Context, inst *v1alpha1.ApplicationInstallation, dryRun bool) error {
	options := []client.CreateOption{client.FieldOwner(cli.FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := s.client.Create(ctx, inst, options...); err != nil {
		return fmt.Errorf("create %s: %w", s.NameOf(inst), s.Target.Explain(err))
	}
	return nil
}

// Change changes the spec of an installation, as it was read, and sets after to what the API server has stored, or
// would store in a dry run. It writes nothing if the spec was changed since before was read.
func (s *Session) Change(ctx context.Context, before, after *v1alpha1.ApplicationInstallation, dryRun bool) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	options := []client.PatchOption{client.FieldOwner(cli.FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	current, wanted := before.DeepCopy(), after.DeepCopy()
	for {
		err := s.client.Patch(ctx, wanted, patch, options...)
		if err == nil {
			*after = *wanted
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("change %s: %w", s.NameOf(before), s.Target.Explain(err))
		}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(before), current); err != nil {
			return fmt.Errorf("get %s: %w", s.NameOf(before), s.Target.Explain(err))
		}
		if current.UID != before.UID || current.Generation != before.Generation {
			return fmt.Errorf("%s was modified concurrently, and nothing was written: look at it, and try again", s.NameOf(before))
		}
		wanted = current.DeepCopy() // its status alone was written
		wanted.Spec = after.Spec
		patch = client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	}
}

// Delete deletes an installation, as it was read, and with it what it has installed. One that is gone already is no
// error.
func (s *Session) Delete(ctx context.Context, inst *v1alpha1.ApplicationInstallation) error {
	err := s.client.Delete(ctx, inst, client.Preconditions{UID: &inst.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", s.NameOf(inst), s.Target.Explain(err))
	}
	return nil
}

// Orphan has an installation leave what it has installed as it is when it is deleted.
func (s *Session) Orphan(ctx context.Context, inst *v1alpha1.ApplicationInstallation) error {
	before := inst.DeepCopy()
	inst.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
	if err := s.client.Patch(ctx, inst, client.MergeFrom(before), client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("set spec.deletionPolicy of %s: %w", s.NameOf(inst), s.Target.Explain(err))
	}
	return nil
}

// Fate returns what becomes of what an installation has installed when the installation is deleted.
func (s *Session) Fate(ctx context.Context, inst *v1alpha1.ApplicationInstallation) installation.Fate {
	return installation.NewLookup(s.Place).Fate(ctx, inst)
}

// SetVersion sets the version of an installation, if its definition offers it.
func (s *Session) SetVersion(ctx context.Context, inst *v1alpha1.ApplicationInstallation, version string) error {
	definition, err := s.Definition(ctx, inst.Spec.ApplicationRef.Name)
	if apierrors.IsForbidden(err) { // admission knows
		inst.Spec.ApplicationRef.Version = version
		return nil
	}
	if err != nil {
		return err
	}
	found, err := s.Offered(definition, version)
	if err != nil {
		return err
	}
	inst.Spec.ApplicationRef.Version = found.Version
	return nil
}

// Untyped returns an installation without its type; nil for none.
func Untyped(inst *v1alpha1.ApplicationInstallation) (*unstructured.Unstructured, error) {
	if inst == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(inst)
	if err != nil {
		return nil, fmt.Errorf("read ApplicationInstallation %s: %w", inst.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Manifest returns an installation as people would commit it: without a status, and without what the API
// server, GitSyncs and kubectl write into metadata.
func Manifest(inst *v1alpha1.ApplicationInstallation) (map[string]any, error) {
	clean := &v1alpha1.ApplicationInstallation{Spec: inst.Spec}
	clean.Namespace, clean.Name, clean.Labels, clean.Annotations = inst.Namespace, inst.Name, map[string]string{}, map[string]string{}
	for key, value := range inst.Labels {
		if key != v1alpha1.OwnerHashLabel {
			clean.Labels[key] = value
		}
	}
	for key, value := range inst.Annotations {
		if key != v1alpha1.OwnerAnnotation && key != v1alpha1.ReconcileAtAnnotation && key != lastApplied {
			clean.Annotations[key] = value
		}
	}
	object, err := Untyped(clean)
	if err != nil {
		return nil, err
	}
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object.Object, nil
}

// lastApplied is where `kubectl apply` notes a manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
