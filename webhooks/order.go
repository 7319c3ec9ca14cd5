package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/webhooks/registration"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=get;list;watch

// order looks up what installations and definitions depend on, in a cache: what was written a moment ago
// may be missing, and the controller finds out what admission has not.
type order struct {
	cached client.Reader
}

// installations returns those of the cluster, sorted, and false if they are not known.
func (o *order) installations(ctx context.Context) ([]v1alpha1.ApplicationInstallation, bool) {
	list := &v1alpha1.ApplicationInstallationList{}
	if err := o.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Info("installations are not known, and not compared", "error", err.Error())
		return nil, false
	}
	items := slices.Clone(list.Items)
	slices.SortFunc(items, func(a, b v1alpha1.ApplicationInstallation) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return items, true
}

// reviewInstallation refuses an installation that would wait for itself, and warns of what its definition
// requires and the cluster has no installation of.
func (o *order) reviewInstallation(ctx context.Context, obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) (admission.Warnings, *field.Error) {
	requires := def != nil && len(def.Spec.Requires) > 0
	if len(obj.Spec.DependsOn) == 0 && !requires {
		return nil, nil
	}
	all, known := o.installations(ctx)
	if !known {
		return nil, nil
	}
	byKey := make(map[types.NamespacedName]*v1alpha1.ApplicationInstallation, len(all))
	for i := range all {
		byKey[client.ObjectKeyFromObject(&all[i])] = &all[i]
	}
	cycle := validation.DependencyCycle(obj, func(key types.NamespacedName) *v1alpha1.ApplicationInstallation { return byKey[key] })
	if cycle != nil {
		return nil, field.Invalid(field.NewPath("spec", "dependsOn"), field.OmitValueType{}, "the installation would wait for itself: "+validation.DescribeCycle(obj, cycle))
	}
	var warnings admission.Warnings
	if requires {
		for _, missing := range validation.Missing(def, all) {
			warnings = append(warnings, fmt.Sprintf("ApplicationDefinition %s requires %s, of which the cluster has no installation: it is not installed or upgraded until there is one",
				def.Name, validation.DescribeRequirement(missing)))
		}
	}
	return warnings, nil
}

// reviewDefinition refuses a definition that would require itself through others: it could never be installed.
func (o *order) reviewDefinition(ctx context.Context, obj *v1alpha1.ApplicationDefinition) *field.Error {
	if len(obj.Spec.Requires) == 0 || obj.IsCopy() {
		return nil
	}
	cycle := validation.RequirementCycle(obj, func(name string) *v1alpha1.ApplicationDefinition {
		def := &v1alpha1.ApplicationDefinition{}
		if err := o.cached.Get(ctx, client.ObjectKey{Name: name}, def, client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		return def
	})
	if cycle == nil {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "requires"), field.OmitValueType{}, "the definition would require itself: "+strings.Join(cycle, " -> "))
}

// needsSnapshot returns the rights that the snapshots take which an installation has made before its upgrades,
// and going back to them; what its definition alone asks for is that one's. def is nil if it is not known.
func (i *applicationInstallations) needsSnapshot(
	ctx context.Context, obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition,
) ([]need, admission.Warnings, error) {
	namespace := "" // whichever the definition names, which is not known yet
	if obj.Spec.Namespace != nil {
		namespace = obj.Spec.Namespace.Name
	}
	undo := needsUndo(obj, def, namespace)
	before := obj.Spec.BeforeUpgrade
	if before == nil || !takesSnapshots(*before) {
		return undo, nil, nil
	}
	wanted := append(undo, needs("spec.beforeUpgrade takes snapshots", authorizationv1.ResourceAttributes{
		Verb: "create", Group: v1alpha1.Group, Resource: applicationSnapshotResource, Namespace: namespace,
	}))
	if before.ApplicationSnapshotClassName == "" {
		return append(wanted, needsQuiesce(namespace, nil)...), nil, nil // any class may be the default by then
	}
	class, warnings, err := i.data.class(ctx, before.ApplicationSnapshotClassName)
	if err != nil {
		return nil, nil, err
	}
	return append(wanted, needsQuiesce(namespace, class)...), warnings, nil
}

func takesSnapshots(b v1alpha1.BeforeUpgrade) bool {
	return b.Snapshot == v1alpha1.SnapshotRequire || b.Snapshot == v1alpha1.SnapshotTry
}

// needsUndo returns the rights that going back with the data takes, where an upgrade fails of an installation
// that asks for that itself.
func needsUndo(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition, namespace string) []need {
	var version *v1alpha1.ApplicationVersion
	if def != nil {
		version = def.GetVersion(obj.GetVersion(def))
	}
	options := obj.GetHelmOptions(def)
	atomic := options != nil && options.Atomic || options == nil && def == nil // which may set it
	asks := obj.Spec.BeforeUpgrade != nil || obj.Spec.DeployOptions != nil
	if !asks || !atomic || !takesSnapshots(obj.GetBeforeUpgrade(version)) {
		return nil
	}
	wanted := []need{needs("an upgrade that fails is rolled back with its data", authorizationv1.ResourceAttributes{
		Verb: "create", Group: v1alpha1.Group, Resource: applicationRollbackResource, Namespace: namespace,
	})}
	wanted = append(wanted, needsClaims(namespace)...)
	return append(wanted, needsScale(namespace, "a rollback scales workloads to zero")...)
}

// dependentsPath names the hook for deletions of installations in the path that it is served at.
const dependentsPath = "dependents"

// dependents registers the warnings for deletions of installations: no deletion fails without them, and
// those by Kubernetes itself, such as with a namespace, are not sent to it.
func dependents() registration.Hook {
	return registration.Hook{
		Resource: applicationInstallationResource, Path: validatePath(dependentsPath), Advises: true,
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, Scope: admissionregistrationv1.NamespacedScope,
		Condition: `!("system:serviceaccounts:kube-system" in request.userInfo.?groups.orValue([]))`,
	}
}

// dependentsTimeout bounds a look for dependents, which comes from memory.
const dependentsTimeout = time.Second

// removals warns users who delete an installation that others depend on. Those stay, and are not upgraded without it.
type removals struct {
	*order
}

var _ admission.Handler = &removals{}

// Handle implements admission.Handler.
func (r *removals) Handle(ctx context.Context, req admission.Request) admission.Response {
	var old struct {
		Spec v1alpha1.ApplicationInstallationSpec `json:"spec"`
	}
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, dependentsTimeout)
	defer cancel()
	if warning := r.warning(ctx, types.NamespacedName{Namespace: req.Namespace, Name: req.Name}, old.Spec.ApplicationRef.Name); warning != "" {
		return admission.Allowed("").WithWarnings(warning)
	}
	return admission.Allowed("")
}

// warning names the installations of the same namespace that depend on one, and counts the others.
func (r *removals) warning(ctx context.Context, key types.NamespacedName, definition string) string {
	all, known := r.installations(ctx)
	if !known {
		return ""
	}
	requiring := r.requiring(ctx, definition)
	if slices.ContainsFunc(all, func(i v1alpha1.ApplicationInstallation) bool {
		return i.Spec.ApplicationRef.Name == definition && client.ObjectKeyFromObject(&i) != key && i.DeletionTimestamp.IsZero()
	}) {
		requiring = nil // another one is left
	}
	var names []string
	others := 0
	for i := range all {
		other := &all[i]
		depends := requiring[other.Spec.ApplicationRef.Name] ||
			slices.ContainsFunc(other.Spec.DependsOn, func(d v1alpha1.InstallationDependency) bool { return d.GetKey(other.Namespace) == key })
		switch {
		case !depends || !other.DeletionTimestamp.IsZero():
		case other.Namespace == key.Namespace:
			names = append(names, other.Name)
		default:
			others++
		}
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d in other namespaces", others))
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("ApplicationInstallation %s is deleted although others depend on it, which stay and are not upgraded without it: %s", key, strings.Join(names, ", "))
}

// requiring returns the definitions that require one.
func (r *removals) requiring(ctx context.Context, name string) map[string]bool {
	list := &v1alpha1.ApplicationDefinitionList{}
	if err := r.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.Requires, func(q v1alpha1.ApplicationRequirement) bool { return q.Name == name }) {
			found[list.Items[i].Name] = true
		}
	}
	return found
}
