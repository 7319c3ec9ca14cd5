package webhooks

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const applicationInstallationResource = "applicationinstallations"

// applicationInstallations are the rules and the defaults of ApplicationInstallation.
type applicationInstallations struct {
	access      *access
	definitions *definitions
	schemas     *valuesSchemas
	// defaultAccount is that of Options.
	defaultAccount string
	// systemNamespace holds what definitions enforce.
	systemNamespace string
	order           *order
	data            *data
}

var _ defaults[*v1alpha1.ApplicationInstallation] = &applicationInstallations{}

// fill takes the version, the namespace and the deploy options from the definition. If
// the definition is not known, it fills in nothing, and review handles that. An update of metadata
// alone fills in nothing either, and needs no permission.
func (i *applicationInstallations) fill(ctx context.Context, obj, old *v1alpha1.ApplicationInstallation) error {
	spec := &obj.Spec
	if old != nil && !i.specChanged(obj, old) {
		return nil
	}
	if spec.ApplicationRef.Version != "" && spec.Namespace != nil && spec.DeployOptions != nil {
		return nil
	}
	if old != nil {
		validation.DefaultApplicationInstallation(obj, old, i.definitions.peek(ctx, spec.ApplicationRef.Name))
		return nil
	}
	def, err := i.definition(ctx, spec.ApplicationRef.Name, "")
	if err != nil {
		return err
	}
	validation.DefaultApplicationInstallation(obj, nil, def)
	return nil
}

// definition calls definitions.get and turns its error into an admission response.
func (i *applicationInstallations) definition(ctx context.Context, name, version string) (*v1alpha1.ApplicationDefinition, error) {
	def, err := i.definitions.get(ctx, name, version)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("cannot look up the definition, try again: " + err.Error())
	}
	return def, nil
}

func (*applicationInstallations) validate(obj, old *v1alpha1.ApplicationInstallation) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateApplicationInstallation(obj, old)
}

func (*applicationInstallations) specChanged(obj, old *v1alpha1.ApplicationInstallation) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) || obj.Labels[v1alpha1.ProvidedLabel] != old.Labels[v1alpha1.ProvidedLabel]
}

func (i *applicationInstallations) review(ctx context.Context, obj, old *v1alpha1.ApplicationInstallation) (admission.Warnings, error) {
	if old != nil {
		if err := i.reviewEnforced(ctx, old); err != nil {
			return nil, err
		}
	}
	def, err := i.definition(ctx, obj.Spec.ApplicationRef.Name, "")
	if err != nil {
		return nil, err
	}
	account := obj.GetServiceAccountName(def, i.defaultAccount)
	wanted := needsToInstall(obj, account)
	snapshots, warnings, err := i.needsSnapshot(ctx, obj, def)
	if err != nil {
		return nil, err
	}
	if err := i.access.check(ctx, obj, applicationInstallationResource, distinct(append(wanted, snapshots...))); err != nil {
		return nil, err
	}
	missing, err := i.reviewSpec(ctx, obj, old, def)
	if err != nil {
		return nil, err
	}
	more, err := i.reviewReference(ctx, obj, old)
	warnings = append(append(warnings, missing...), more...)
	if err == nil {
		err = i.reviewValues(ctx, obj, old, def)
	}
	if err != nil {
		return warnings, err
	}
	var unknown []need
	if obj.Spec.Namespace == nil {
		unknown = append(unknown, needsAnyNamespace()...)
	}
	if def == nil && account == "" {
		unknown = append(unknown, needsToActAs(obj.Namespace, "",
			"the definition, which is not known yet, may name any ServiceAccount: set spec.serviceAccountName; permission to create pods there is enough"))
	}
	return warnings, i.access.check(ctx, obj, applicationInstallationResource, unknown)
}

// reviewSpec checks the account, the deletion policy and the order by the definition, which is nil if
// it is not known, and by other installations. An update that only endsOrphan is not checked.
func (i *applicationInstallations) reviewSpec(
	ctx context.Context, obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition,
) (admission.Warnings, error) {
	if endsOrphan(obj, old, def) {
		return nil, nil
	}
	var errs field.ErrorList
	missing, refused := i.order.reviewInstallation(ctx, obj, def)
	if def != nil {
		errs = append(validation.ValidateInstallationAccount(obj, def, i.defaultAccount), validation.ValidateInstallationDeletionPolicy(obj, old, def)...)
		if warning := validation.OrphanForbiddenWarning(obj, def); warning != "" {
			missing = append(missing, warning)
		}
	}
	if refused != nil {
		errs = append(errs, refused)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind).GroupKind(), obj.Name, errs)
	}
	return missing, nil
}

// endsOrphan reports whether an update changes nothing in the spec, apart from defaults, but that what is installed no
// longer stays when the installation is deleted. Removal by force does that before it deletes, whatever else has become
// wrong by then.
func endsOrphan(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) bool {
	if old == nil || old.Spec.DeletionPolicy != v1alpha1.InstallationOrphan || obj.Spec.DeletionPolicy == v1alpha1.InstallationOrphan {
		return false
	}
	before := old.DeepCopy()
	before.Spec.DeletionPolicy = obj.Spec.DeletionPolicy
	validation.DefaultApplicationInstallation(before, old, def)
	return apiequality.Semantic.DeepEqual(before.Spec, obj.Spec)
}

// reviewReference checks the definition and the version. An installation that comes from
// git, or with the cluster, may arrive before its definition does, and waits for it, unless
// it leaves its namespace to the definition and its writer may not install into any: see review. An
// unchanged reference stays valid even if its definition is gone.
func (i *applicationInstallations) reviewReference(ctx context.Context, obj, old *v1alpha1.ApplicationInstallation) (admission.Warnings, error) {
	ref := obj.Spec.ApplicationRef
	if old != nil && old.Spec.ApplicationRef == ref {
		return nil, nil
	}
	path := field.NewPath("spec", "applicationRef")
	def, err := i.definition(ctx, ref.Name, ref.Version)
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	if def == nil {
		errs = field.ErrorList{field.NotFound(path.Child("name"), ref.Name)}
	} else {
		errs = validation.ValidateInstallationVersion(obj, def)
	}
	if len(errs) == 0 {
		return validation.ApplicationInstallationWarnings(obj, old, def), nil
	}
	if delivered(ctx) {
		return admission.Warnings{fmt.Sprintf("%s: the installation waits until it exists", strings.TrimSpace(errs.ToAggregate().Error()))}, nil
	}
	return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind).GroupKind(), obj.Name, errs)
}

// reviewValues checks values against the schema of the chart, if it is known. Values that were accepted
// stay valid for the same version.
func (i *applicationInstallations) reviewValues(ctx context.Context, obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) error {
	if obj.Spec.Values == nil && obj.Spec.ValuesBlock == "" {
		return nil
	}
	if old != nil && obj.Spec.ApplicationRef == old.Spec.ApplicationRef && obj.Spec.ValuesBlock == old.Spec.ValuesBlock &&
		apiequality.Semantic.DeepEqual(obj.Spec.Values, old.Spec.Values) {
		return nil
	}
	if def != nil && def.GetVersion(obj.Spec.ApplicationRef.Version) == nil {
		def = i.definitions.peek(ctx, def.Name) // it may have got the version a moment ago
	}
	if def == nil {
		return nil
	}
	known := i.schemas.of(ctx, def, obj.Spec.ApplicationRef.Version)
	if known == nil {
		return nil
	}
	if errs := known.CheckInstallation(obj); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind).GroupKind(), obj.Name, errs)
	}
	return nil
}

// needsToInstall returns the rights that an installation uses on behalf of its writer, since the chart
// runs with Waybill's own. The dashboard asks for the same.
func needsToInstall(obj *v1alpha1.ApplicationInstallation, account string) []need {
	var wanted []need
	for _, r := range validation.RightsToInstall(obj, account) {
		wanted = append(wanted, need{anyOf: r.AnyOf, because: r.Because})
	}
	return wanted
}

// needsAnyNamespace applies if no namespace was named and none could be filled in: it will be the
// one that the definition names once it exists, created and labelled as the definition says.
func needsAnyNamespace() []need {
	var wanted []need
	for _, verb := range []string{verbInstallInto, "create", "patch"} {
		wanted = append(wanted, needs("the definition, which is not known yet, may name any namespace: set spec.namespace",
			authorizationv1.ResourceAttributes{Verb: verb, Resource: "namespaces"}))
	}
	return wanted
}
