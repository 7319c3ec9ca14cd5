package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

// ofInstallation returns what an install, an upgrade or an uninstall would change in the target.
func (j *job) ofInstallation(ctx context.Context, inst *v1alpha1.ApplicationInstallation) ([]change, error) {
	hubID, err := j.hubID(ctx, j.Hub)
	if err != nil {
		return nil, err
	}
	owner := apply.Owner{HubID: hubID, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name}
	resolved, err := j.lookup.Resolve(ctx, installation.Wish{Installation: inst, Version: j.version, Values: j.values})
	var gone *installation.GoneError
	if errors.As(err, &gone) {
		j.Warn("%s %s/%s: %s", inst.Kind, inst.Namespace, inst.Name, gone)
		if inst.DeletionTimestamp.IsZero() { // what is removed by force is not for users of the cluster to keep
			inst = inst.DeepCopy()
			inst.Spec.DeletionPolicy = v1alpha1.InstallationDelete
		}
		return j.ofUninstall(ctx, inst, owner)
	}
	if err != nil {
		return nil, err
	}
	if err := j.actAs(ctx, inst, resolved.Account()); err != nil {
		return nil, err
	}
	namespace, err := j.ofNamespace(ctx, resolved, owner)
	if err != nil {
		return nil, err
	}
	var rest []change
	if resolved.Definition.GetMethod() == v1alpha1.MethodKustomize {
		rest, err = j.ofKustomization(ctx, resolved, owner)
	} else {
		rest, err = j.ofRelease(ctx, resolved, owner)
	}
	return append(namespace, rest...), err
}

// ofRemoval returns what an uninstall would delete.
func (j *job) ofRemoval(ctx context.Context, inst *v1alpha1.ApplicationInstallation) ([]change, error) {
	hubID, err := j.hubID(ctx, j.Hub)
	if err != nil {
		return nil, err
	}
	return j.ofUninstall(ctx, inst, apply.Owner{HubID: hubID, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name})
}

// ofNamespace returns what would become of the namespace of the workload, which is created, and gets
// labels and annotations, as the installation says.
func (j *job) ofNamespace(ctx context.Context, r *installation.Resolved, owner apply.Owner) ([]change, error) {
	wanted := r.Target()
	marked := len(wanted.Labels)+len(wanted.Annotations) > 0
	if !wanted.Create && !marked {
		return nil, nil
	}
	api, err := j.Target.Client()
	if err != nil {
		return nil, err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(wanted.Name)
	namespace.SetLabels(wanted.Labels)
	namespace.SetAnnotations(wanted.Annotations)
	object := manifest.Object{Unstructured: namespace}
	err = api.Get(ctx, client.ObjectKey{Name: wanted.Name}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err) && (!wanted.Create || j.provided.namespaces[wanted.Name]):
		return nil, nil // what is to be in it says so
	case apierrors.IsNotFound(err):
		j.provided.namespaces[wanted.Name] = true // another installation that creates it finds it there
		return []change{{cluster: j.Target.Name(), id: object.ID(), after: namespace}}, nil
	case apierrors.IsForbidden(err):
		return j.known([]change{{cluster: j.Target.Name(), id: object.ID(), omitted: err}}), nil
	case err != nil:
		return nil, fmt.Errorf("get namespace %s: %w", wanted.Name, j.Target.Explain(err))
	case !marked:
		return nil, nil
	}
	// Each installation is its own field manager there.
	d := delivery{cluster: j.acting, manager: v1alpha1.FieldManager + ":" + owner.Hash(), acting: j.acting != j.Target, standIn: j.acting == j.Target}
	c, err := d.predictOne(ctx, object)
	return j.known([]change{c}), err
}

// madeFor returns what is there before an installation: what the files provide, and its namespace if
// that is created.
func (j *job) madeFor(r *installation.Resolved) provided {
	all := j.provided.with(nil)
	if wanted := r.Target(); wanted.Create {
		all.namespaces[wanted.Name] = true
	}
	return all
}

// identityOf returns the identity of the release of an installation. What was made as another
// ServiceAccount is not gone by.
func (j *job) identityOf(inst *v1alpha1.ApplicationInstallation, namespace string, owner apply.Owner) (release.Identity, error) {
	ignored, err := ignore.Compile(inst.Spec.IgnoreDifferences)
	id := release.Identity{Namespace: namespace, Name: inst.Name, Owner: owner.String(), OwnerHash: owner.Hash(), Ignored: ignored}
	if known := inst.Status.Release; known != nil && known.ServiceAccountName == j.account {
		id.Known = known
	}
	return id, err
}

// ofRelease asks the release engine what it would do.
func (j *job) ofRelease(ctx context.Context, r *installation.Resolved, owner apply.Owner) ([]change, error) {
	id, err := j.identityOf(r.Installation, r.Namespace, owner)
	if err != nil {
		return nil, err
	}
	options := installation.Options{Revision: 1, Stamp: id.Stamp()}
	if current := r.Installation.Status.Release; current != nil {
		options.Revision = int(current.Revision) + 1
	}
	if err := options.See(j.acting); err != nil {
		return nil, err
	}
	objects, err := j.sources.Render(ctx, r, options)
	if err != nil {
		return nil, err
	}
	for _, warning := range objects.Warnings {
		j.Warn("%s", warning)
	}
	changes, err := j.ofCRDs(ctx, r, id, objects.CRDs)
	if err != nil {
		return nil, err
	}
	rest, err := j.preview(ctx, id, objects.Objects, j.madeFor(r).with(objects.CRDs))
	changes = append(changes, rest...)
	holdIfRefused(changes, changes)
	j.keepHeld(r.Installation, changes)
	return changes, err
}

// preview returns what would become of the objects of a release.
func (j *job) preview(ctx context.Context, id release.Identity, wanted []manifest.Object, before provided) ([]change, error) {
	at, err := newTarget(j.acting)
	if err != nil {
		return nil, err
	}
	previews, err := release.NewEngine().Preview(ctx, at, id, wanted, release.Provided{Kinds: before.kinds, Namespaces: before.namespaces})
	if err != nil {
		return nil, err
	}
	changes := make([]change, len(previews))
	for i, p := range previews {
		changes[i] = change{cluster: j.Target.Name(), id: p.ID, before: p.Before, after: p.After, note: p.Note, refused: p.Refused}
	}
	return changes, nil
}

// ofCRDs returns what would happen to the CRDs of a chart. Releases share them.
func (j *job) ofCRDs(ctx context.Context, r *installation.Resolved, id release.Identity, crds []manifest.Object) ([]change, error) {
	d := delivery{cluster: j.acting, acting: j.acting != j.Target, manager: v1alpha1.HelmFieldManager, provided: j.madeFor(r)}
	changes, err := d.predict(ctx, crds)
	for i := range changes {
		c := &changes[i]
		if c.before == nil || c.after == nil {
			continue
		}
		writes, refusal := false, error(nil)
		if r.HelmOptions().GetCRDs() == v1alpha1.CRDCreateReplace {
			writes, refusal = release.ReplacesCRD(id, c.before, c.after)
		}
		switch {
		case refusal != nil:
			c.refused, c.note = true, refusal.Error()
		case !writes:
			*c = change{cluster: c.cluster, id: c.id, before: c.before, after: c.before}
		}
	}
	return changes, err
}

// ofKustomization applies what was built, as waybill-sync does.
func (j *job) ofKustomization(ctx context.Context, r *installation.Resolved, owner apply.Owner) ([]change, error) {
	objects, err := j.sources.Render(ctx, r, installation.Options{})
	if err != nil {
		return nil, err
	}
	if len(objects.Objects)+len(objects.Problems) == 0 {
		return nil, fmt.Errorf("its folder holds no manifest at %s: nothing would be applied or deleted", objects.Source)
	}
	for _, object := range objects.Objects {
		object.SetLabel(v1alpha1.ReleaseLabel, r.Installation.Name)
	}
	d, err := j.applied(ctx, r.Installation, owner)
	if err != nil {
		return nil, err
	}
	j.warnOf(objects)
	d.namespace, d.prune, d.unread, d.provided = r.Namespace, true, objects.Problems, j.madeFor(r)
	return d.predict(ctx, objects.Objects)
}

// applied returns the delivery of an installation by method kustomize, with what it has applied.
func (j *job) applied(ctx context.Context, inst *v1alpha1.ApplicationInstallation, owner apply.Owner) (delivery, error) {
	ignored, err := ignore.Compile(inst.Spec.IgnoreDifferences)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{
		cluster: j.acting, acting: j.acting != j.Target, manager: v1alpha1.FieldManager, owner: &owner, holds: inst.Status.Held, ignored: ignored,
	}
	if inst.Status.Inventory == nil {
		return d, nil
	}
	api, err := j.Target.Client()
	if err != nil {
		return d, err
	}
	listed, err := new(inventory.Store).Load(ctx, api, inst, *inst.Status.Inventory)
	d.inventory = withoutApplication(listed)
	return d, err
}

// ofUninstall returns what an uninstall would delete, except for the Application. It goes by what was installed, and needs neither
// the definition nor its source, but to see whether that forbids to leave it there.
func (j *job) ofUninstall(ctx context.Context, inst *v1alpha1.ApplicationInstallation, owner apply.Owner) ([]change, error) {
	installed := inst.Status.Application
	if installed == nil {
		return nil, nil
	}
	fate := j.lookup.Fate(ctx, inst)
	if note := cmp.Or(fate.Unheeded, fate.Unknown); note != "" {
		j.Warn("%s %s/%s: %s", inst.Kind, inst.Namespace, inst.Name, note)
	}
	if fate.Stays {
		return nil, nil
	}
	if err := j.actAs(ctx, inst, cmp.Or(inst.Spec.ServiceAccountName, installed.ServiceAccountName)); err != nil {
		return nil, err
	}
	if installed.Method != v1alpha1.MethodKustomize {
		id, err := j.identityOf(inst, installed.Namespace, owner)
		if err != nil {
			return nil, err
		}
		return j.preview(ctx, id, nil, provided{})
	}
	d, err := j.applied(ctx, inst, owner)
	if err != nil {
		return nil, err
	}
	return d.predictRemovals(ctx, d.inventory)
}

// withoutApplication removes the Application that describes the installation: it is not part of
// what is rendered.
func withoutApplication(ids []manifest.ID) []manifest.ID {
	var rest []manifest.ID
	for _, id := range ids {
		if id.Group != v1alpha1.Group || id.Kind != v1alpha1.ApplicationKind {
			rest = append(rest, id)
		}
	}
	return rest
}
