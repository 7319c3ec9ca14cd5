package release

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Preview is one object of a release as it is, and as an install or upgrade would leave it.
type Preview struct {
	ID manifest.ID
	// Before is the object as it is; nil if there is none.
	Before *unstructured.Unstructured
	// After is what the API server would make of it; nil if it would be deleted.
	After *unstructured.Unstructured
	// Note says why the API server would refuse the object, or why it would be kept although it has
	// left the release.
	Note string
	// Refused says that the API server would refuse it: the install or upgrade would fail.
	Refused bool
}

// Provided is what would be made before a release, whether or not the cluster has it already.
type Provided struct {
	// Kinds are those that CRDs define.
	Kinds map[schema.GroupKind]bool
	// Namespaces by name.
	Namespaces map[string]bool
}

// Preview returns what an install of the wanted objects, or an upgrade to them, would do to each of
// them, and to those objects of the deployed revision, and of what failed or was made by hand since,
// that are not among them. Nothing is written: each write is sent as a dry run. Hooks and CRDs are
// left out. Objects of a kind or in a namespace that is provided are returned as wanted until the
// cluster has it, and those of others that it does not have are refused. wanted carries the marks of
// the release.
func (e *Engine) Preview(ctx context.Context, t Target, id Identity, wanted []manifest.Object, with Provided) ([]Preview, error) {
	observed, err := e.Observe(ctx, t, id)
	if err != nil {
		return nil, err
	}
	if decision := Decide(observed, id, ""); decision.Action == ActionRefuse {
		_, err := refuse(ctx, &session{id: id}, decision)
		return nil, err
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id}, observed: observed}
	return inSession(ctx, j, func(_ context.Context, s *session) ([]Preview, error) {
		previews, err := s.preview(wanted, with)
		return previews, s.failed("preview", err)
	})
}

func (s *session) preview(wanted []manifest.Object, with Provided) ([]Preview, error) {
	old, err := s.deployed()
	if err != nil {
		return nil, err
	}
	if err := s.readLeftovers(); err != nil {
		return nil, err
	}
	list, previews, err := s.client.locate(wanted, with.Kinds)
	if err != nil {
		return nil, err
	}
	made := namespacesIn(list)
	maps.Copy(made, with.Namespaces)
	add := func(p *Preview, err error) error {
		s.client.mu.Lock()
		defer s.client.mu.Unlock()
		if p != nil {
			previews = append(previews, *p)
		}
		return err
	}
	if err := s.client.batches(list, func(info *resource.Info) error { return add(s.client.previewWrite(old.objects.Get(info), info, made)) }); err != nil {
		return nil, s.client.fail(err)
	}
	seen := slices.Clone(list)
	for _, had := range slices.Concat([]recorded{old}, s.client.leftovers) {
		gone := had.objects.Difference(seen)
		seen = append(seen, gone...)
		if err := s.client.batches(gone, func(info *resource.Info) error { return add(s.client.previewRemoval(info, had.vouched)) }); err != nil {
			return nil, s.client.fail(err)
		}
	}
	slices.SortFunc(previews, func(a, b Preview) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return previews, nil
}

// deployed returns what the deployed revision contains; nothing if there is none or it is altered,
// and so one of the leftovers.
func (s *session) deployed() (recorded, error) {
	for _, r := range slices.Backward(s.observed.Revisions) {
		if r.Status != helmrelease.StatusDeployed {
			continue
		}
		had, err := s.had(r.Number)
		if err != nil || !had.vouched {
			return recorded{}, err
		}
		return had, nil
	}
	return recorded{}, nil
}

// locate finds the resources of objects. It returns the previews of those of a kind that the cluster
// does not offer: unless it is defined first, Helm refuses the whole release for it.
func (c *client) locate(wanted []manifest.Object, defined map[schema.GroupKind]bool) (kube.ResourceList, []Preview, error) {
	var list kube.ResourceList
	var unknown []Preview
	for _, o := range wanted {
		gvk := o.GroupVersionKind()
		mapping, err := c.getter.target.Mapper().RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
		if meta.IsNoMatchError(err) {
			p := Preview{ID: o.ID(), After: o.Unstructured}
			if !defined[gvk.GroupKind()] {
				p.Note, p.Refused = "the cluster does not serve this kind, and no CRD that would be applied first defines it", true
			}
			unknown = append(unknown, p)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("find resource of %s: %w", o.ID(), err)
		}
		info := &resource.Info{Mapping: mapping, Name: o.GetName(), Object: o.DeepCopy()}
		if info.Namespaced() {
			if info.Namespace = o.GetNamespace(); info.Namespace == "" {
				info.Namespace = c.id.Namespace
			}
		}
		list = append(list, info)
	}
	return list, unknown, nil
}

// namespacesIn returns the Namespaces among objects. Helm writes them before all else.
func namespacesIn(list kube.ResourceList) map[string]bool {
	found := map[string]bool{}
	for _, info := range list {
		if info.Mapping.GroupVersionKind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			found[info.Name] = true
		}
	}
	return found
}

// previewWrite returns what update would do. before is the object in the deployed revision; nil if
// it is not there. made are the namespaces that are made before the object.
func (c *client) previewWrite(before, info *resource.Info, made map[string]bool) (*Preview, error) {
	if err := c.mark(info); err != nil {
		return nil, err
	}
	wanted, err := object(info)
	if err != nil {
		return nil, err
	}
	p := &Preview{ID: idOf(info)}
	p.Before, err = c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		p.Before = nil
		p.After, err = c.post(info, wanted, []string{metav1.DryRunAll})
		if apierrors.IsNotFound(err) && made[info.Namespace] {
			p.After, err = wanted, nil
		}
	case err != nil:
		return nil, c.about("read", info, err)
	default:
		if before == nil {
			if err = c.conflict(p.Before); err != nil {
				break
			}
			before = info
		}
		p.After, err = c.patch(before, info, p.Before, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	}
	if unanswered(err) {
		return nil, c.about("try out", info, err)
	}
	if err != nil {
		p.After, p.Note, p.Refused = wanted, err.Error(), true
	}
	return p, c.ctx.Err()
}

// conflict says whose a live object is that the release does not contain yet; nil if Helm would take
// it over, because it has the marks that Helm gives to the objects of this release. Without them,
// Helm refuses the whole release.
func (c *client) conflict(live *unstructured.Unstructured) error {
	marks := live.GetAnnotations()
	name, namespace := marks[releaseNameAnnotation], marks[releaseNamespaceAnnotation]
	switch {
	case live.GetLabels()[managedByLabel] == managedByHelm && name == c.id.Name && namespace == c.id.Namespace:
		return nil
	case name != "":
		return fmt.Errorf("it exists and belongs to the release %s/%s: Helm refuses to take it over", namespace, name)
	case marks[v1alpha1.OwnerAnnotation] != "":
		return fmt.Errorf("it exists and belongs to %s: Helm refuses to take it over", marks[v1alpha1.OwnerAnnotation])
	}
	return fmt.Errorf("it exists and belongs to no release: Helm refuses to take it over, unless it has the label %s: %s and the annotations %s: %s and %s: %s",
		managedByLabel, managedByHelm, releaseNameAnnotation, c.id.Name, releaseNamespaceAnnotation, c.id.Namespace)
}

// previewRemoval returns what would become of an object that has left the release.
func (c *client) previewRemoval(info *resource.Info, vouched bool) (*Preview, error) {
	live, err := c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.about("read", info, err)
	}
	p := &Preview{ID: idOf(info), Before: live}
	if why := c.keep(live, vouched); why != "" {
		p.After, p.Note = live, "would be kept: "+why
	}
	return p, nil
}
