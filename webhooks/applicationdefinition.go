package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const applicationDefinitionResource = "applicationdefinitions"

// applicationDefinitions are the rules of ApplicationDefinition.
type applicationDefinitions struct {
	access          *access
	systemNamespace string
	order           *order
}

var _ guard[*v1alpha1.ApplicationDefinition] = &applicationDefinitions{}

func (*applicationDefinitions) validate(obj, old *v1alpha1.ApplicationDefinition) (admission.Warnings, field.ErrorList) {
	return validation.ApplicationDefinitionWarnings(obj), validation.ValidateApplicationDefinition(obj, old)
}

// specChanged counts what only a hub decides of its copies: which they are, and what may be removed in use.
func (*applicationDefinitions) specChanged(obj, old *v1alpha1.ApplicationDefinition) bool {
	return obj.IsCopy() != old.IsCopy() || obj.Annotations[v1alpha1.CopyOfAnnotation] != old.Annotations[v1alpha1.CopyOfAnnotation] ||
		obj.IsCopy() && obj.Annotations[v1alpha1.ForceRemoveAnnotation] != old.Annotations[v1alpha1.ForceRemoveAnnotation] ||
		!apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (d *applicationDefinitions) review(ctx context.Context, obj, old *v1alpha1.ApplicationDefinition) (admission.Warnings, error) {
	wanted := d.needs(obj)
	if obj.IsCopy() || (old != nil && old.IsCopy()) {
		if !delivered(ctx) {
			return nil, apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource(applicationDefinitionResource).GroupResource(), obj.Name,
				errors.New("it is a copy: change the definition in the hub that it comes from"))
		}
		wanted = append(wanted, needsCopy(obj.Name))
	} else if obj.IsProvided() {
		wanted = append(wanted, needsProvided(obj)...)
	}
	if err := d.access.check(ctx, obj, applicationDefinitionResource, wanted); err != nil {
		return nil, err
	}
	if refused := d.order.reviewDefinition(ctx, obj); refused != nil {
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind).GroupKind(), obj.Name, field.ErrorList{refused})
	}
	return nil, nil
}

// needs returns the rights to read the Secrets in the system namespace that the sources name.
func (d *applicationDefinitions) needs(obj *v1alpha1.ApplicationDefinition) []need {
	var wanted []need
	for i := range obj.Spec.Versions {
		t := obj.Spec.Versions[i].Template
		if t == nil {
			continue
		}
		path := fmt.Sprintf("spec.versions[%d].template.source", i)
		if h := t.Source.Helm; h != nil {
			wanted = append(wanted, d.needsCredentials(path+".helm.credentials", h.Credentials)...)
			if h.CASecretRef != nil {
				wanted = append(wanted, needsSecret(path+".helm.caSecretRef", d.systemNamespace, h.CASecretRef.Name))
			}
		}
		if g := t.Source.Git; g != nil {
			wanted = append(wanted, d.needsCredentials(path+".git.credentials", g.Credentials)...)
		}
	}
	return distinct(wanted)
}

func (d *applicationDefinitions) needsCredentials(path string, c *v1alpha1.SourceCredentials) []need {
	if c == nil {
		return nil
	}
	return []need{needsSecret(path, d.systemNamespace, c.SecretRef.Name)}
}

// needsCopy returns the right to write copies, which a driver holds in its user clusters.
func needsCopy(name string) need {
	return needs("it is a copy of a hub's definition", authorizationv1.ResourceAttributes{
		Verb: verbCopy, Group: v1alpha1.Group, Resource: applicationDefinitionResource, Name: name,
	})
}

// needsProvided returns the rights to install the definition in every cluster, which is what clusters do that it
// is offered to.
func needsProvided(obj *v1alpha1.ApplicationDefinition) []need {
	field := "spec.default"
	if obj.Spec.Enforced {
		field = "spec.enforced"
	}
	return []need{
		needs(field+" installs it in clusters, with full rights in them", usesClusters("")),
		needs(field+" installs it", installs("", obj.Name)),
	}
}

// distinct keeps the first of several needs for the same permission: versions often share a Secret.
func distinct(wanted []need) []need {
	var kept []need
	for _, n := range wanted {
		if !slices.ContainsFunc(kept, func(k need) bool { return slices.Equal(k.anyOf, n.anyOf) }) {
			kept = append(kept, n)
		}
	}
	return kept
}

// guardUpdate prevents two sources from owning one definition, and versions in use from being
// removed. It consults only the old object.
func (*applicationDefinitions) guardUpdate(obj, old *v1alpha1.ApplicationDefinition) field.ErrorList {
	var errs field.ErrorList
	annotations := field.NewPath("metadata", "annotations")
	was, is := old.Annotations[v1alpha1.OwnerAnnotation], obj.Annotations[v1alpha1.OwnerAnnotation]
	if was != "" && is != "" && was != is && obj.Annotations[v1alpha1.AdoptAnnotation] != "true" {
		errs = append(errs, field.Invalid(annotations.Key(v1alpha1.OwnerAnnotation), is,
			"the definition belongs to "+was+": two sources cannot own one definition"))
	}
	for _, use := range inUse(obj, old) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "versions"), use.Version, "cannot be removed: "+describeUse(use)+
			"; move them to another version, or annotate the definition with "+v1alpha1.ForceRemoveAnnotation))
	}
	return errs
}

// guardDelete prevents the deletion of definitions in use, and of copies by users without the
// right to write them. A permission that cannot be checked blocks nothing.
func (d *applicationDefinitions) guardDelete(ctx context.Context, old *v1alpha1.ApplicationDefinition) error {
	if used := inUse(nil, old); len(used) > 0 {
		var uses []string
		for _, use := range used {
			uses = append(uses, fmt.Sprintf("version %q %s", use.Version, describeUse(use)))
		}
		way := "delete them"
		if old.Spec.Enforced {
			way = "unset spec.enforced, then delete them"
		}
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource(applicationDefinitionResource).GroupResource(), old.Name,
			fmt.Errorf("it cannot be deleted: %s; %s, or annotate the definition with %s",
				strings.Join(uses, "; "), way, v1alpha1.ForceRemoveAnnotation))
	}
	if !old.IsCopy() {
		return nil
	}
	err := d.access.check(ctx, old, applicationDefinitionResource, []need{needsCopy(old.Name)})
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// inUse returns the uses, as recorded by controllers, of versions that obj no longer offers
// but may not drop. If obj is nil, no version is left.
func inUse(obj, old *v1alpha1.ApplicationDefinition) []v1alpha1.VersionUsage {
	forced := old
	if obj != nil {
		forced = obj
	}
	removed := validation.RemovedVersions(obj, old)
	var used []v1alpha1.VersionUsage
	for _, use := range old.Status.UsedBy {
		if use.Count > 0 && slices.Contains(removed, use.Version) && !validation.ForceRemoved(forced, use.Version) {
			used = append(used, use)
		}
	}
	return used
}

// describeUse names as many installations as the status does, and counts the rest.
func describeUse(use v1alpha1.VersionUsage) string {
	s := "is used by " + strings.Join(use.Installations, ", ")
	if more := int(use.Count) - len(use.Installations); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
