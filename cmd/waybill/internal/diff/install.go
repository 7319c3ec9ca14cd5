package diff

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/installation"
	"waybill.dev/waybill/cmd/waybill/internal/manifests"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/release"
)

// ofInstallation returns what an install or upgrade would change in the target.
func (j *job) ofInstallation(ctx context.Context, inst *v1alpha1.ApplicationInstallation) ([]change, error) {
	resolved, err := j.lookup.Resolve(ctx, installation.Wish{Installation: inst, Version: j.version, Values: j.values})
	if err != nil {
		return nil, err
	}
	hubID, err := j.hubID(ctx, j.hub)
	if err != nil {
		return nil, err
	}
	owner := apply.Owner{HubID: hubID, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name}
	namespace, err := j.ofNamespace(ctx, resolved)
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

// ofNamespace returns the namespace that would be created (K37).
func (j *job) ofNamespace(ctx context.Context, r *installation.Resolved) ([]change, error) {
	wanted := r.Target()
	if !wanted.Create || j.provided.namespaces[wanted.Name] {
		return nil, nil
	}
	api, err := j.target.Client()
	if err != nil {
		return nil, err
	}
	err = api.Get(ctx, client.ObjectKey{Name: wanted.Name}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return nil, j.target.Explain(err)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(wanted.Name)
	namespace.SetLabels(wanted.Labels)
	namespace.SetAnnotations(wanted.Annotations)
	return []change{{cluster: j.target.Name(), id: manifest.Object{Unstructured: namespace}.ID(), after: namespace}}, nil
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

// ofRelease asks the release engine what it would do.
func (j *job) ofRelease(ctx context.Context, r *installation.Resolved, owner apply.Owner) ([]change, error) {
	at, err := newTarget(j.target)
	if err != nil {
		return nil, err
	}
	id := release.Identity{
		Namespace: r.Namespace, Name: r.Installation.Name, Owner: owner.String(), OwnerHash: owner.Hash(), Known: r.Installation.Status.Release,
	}
	options := installation.Options{Revision: 1, Stamp: id.Stamp()}
	if current := r.Installation.Status.Release; current != nil {
		options.Revision = int(current.Revision) + 1
	}
	if err := options.See(j.target); err != nil {
		return nil, err
	}
	objects, err := j.sources.Render(ctx, r, options)
	if err != nil {
		return nil, err
	}
	for _, warning := range objects.Warnings {
		j.env.Warnf("%s", warning)
	}
	changes, err := j.ofCRDs(ctx, r, objects.CRDs)
	if err != nil {
		return nil, err
	}
	before := j.madeFor(r).with(objects.CRDs)
	previews, err := release.NewEngine().Preview(ctx, at, id, objects.Objects, release.Provided{Kinds: before.kinds, Namespaces: before.namespaces})
	if err != nil {
		return nil, err
	}
	for _, p := range previews {
		changes = append(changes, change{cluster: j.target.Name(), id: p.ID, before: p.Before, after: p.After, note: p.Note, refused: p.Refused})
	}
	holdIfRefused(changes, changes)
	return changes, nil
}

// ofCRDs returns what would happen to the CRDs of a chart.
func (j *job) ofCRDs(ctx context.Context, r *installation.Resolved, crds []manifest.Object) ([]change, error) {
	d := delivery{cluster: j.target, manager: v1alpha1.HelmFieldManager, provided: j.madeFor(r)}
	changes, err := d.predict(ctx, crds)
	if r.HelmOptions().GetCRDs() == v1alpha1.CRDCreate {
		for i := range changes {
			if changes[i].before != nil {
				changes[i].after = changes[i].before
			}
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
	if err := manifests.Join(objects.Problems); err != nil {
		return nil, err
	}
	for _, object := range objects.Objects {
		object.SetLabel(v1alpha1.ReleaseLabel, r.Installation.Name)
	}
	d := delivery{
		cluster: j.target, manager: v1alpha1.FieldManager, owner: &owner, namespace: r.Namespace, prune: true,
		provided: j.madeFor(r),
	}
	if in := r.Installation.Status.Inventory; in != nil {
		api, err := j.target.Client()
		if err != nil {
			return nil, err
		}
		if d.inventory, err = new(inventory.Store).Load(ctx, api, r.Installation, *in); err != nil {
			return nil, err
		}
		d.inventory = withoutApplication(d.inventory)
	}
	return d.predict(ctx, objects.Objects)
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
