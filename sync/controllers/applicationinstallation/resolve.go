package applicationinstallation

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/reconcile"
)

// want finds out what is wanted, and has it fetched. Why that cannot be had is no reason to leave
// alone what is installed; but that the installation is being withdrawn is, and that it is not
// known any more what may be done to what is installed.
func (d *driver) want(ctx context.Context, s *scope) error {
	var err error
	if s.ignored, err = ignore.Compile(s.inst.Spec.IgnoreDifferences); err != nil {
		return reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", err)
	}
	s.missing = d.resolve(ctx, s)
	if s.missing == nil {
		s.missing = d.readValues(ctx, s)
	}
	switch {
	case s.missing == nil:
		d.prepare(s)
		return nil
	case reconcile.ReasonOf(s.missing) == v1alpha1.DeletingReason, s.definition == nil && s.options() == nil:
		return s.missing
	default:
		s.looked = s.session.source.Rest()
		return nil
	}
}

// resolve finds the definition and its version on the hub, never in a copy, and reads the
// credentials of its source. What is not offered to the cluster does not exist for it.
func (d *driver) resolve(ctx context.Context, s *scope) error {
	ref := s.inst.Spec.ApplicationRef
	definition := &v1alpha1.ApplicationDefinition{}
	offer := withheld
	err := d.Hub.Get(ctx, types.NamespacedName{Name: ref.Name}, definition)
	if err == nil {
		offer, err = d.offerOf(ctx, definition)
	}
	if err != nil || offer == withheld {
		s.definition = s.session.definition
	}
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get definition: %w", err)
	case offer == withheld:
		return s.unresolved(notOffered, ref.Name)
	}
	s.definition, s.session.definition = definition, remembered(definition)
	wanted := s.inst.GetVersion(definition)
	s.source.version = definition.GetVersion(wanted)
	if validation.Withdrawn(s.inst, definition) {
		return d.withdraw(ctx, s, wanted)
	}
	switch {
	case s.source.version == nil && offer == offered:
		return s.unresolved("ApplicationDefinition %q has no version %q, it offers %s", ref.Name, wanted, versions(definition))
	case s.source.version == nil:
		return s.unresolved("ApplicationDefinition %q has no version %q", ref.Name, wanted)
	case s.source.version.Template == nil:
		return reconcile.Stalled(v1alpha1.InvalidSpecReason, "version %q of ApplicationDefinition %q has no template", wanted, ref.Name)
	}
	if errs := validation.ValidateInstallationAccount(s.inst, definition, d.DefaultServiceAccount); len(errs) > 0 {
		return reconcile.Stalled(v1alpha1.ServiceAccountRequiredReason, "%w", errs.ToAggregate())
	}
	s.resolved = v1alpha1.ResolvedApplication{
		Name: ref.Name, Version: s.source.version.Version, Method: definition.GetMethod(), Namespace: s.namespace().Name,
		ServiceAccountName: s.inst.GetServiceAccountName(definition, d.DefaultServiceAccount),
	}
	if offer == offered {
		if err := d.recordBegun(ctx, definition); err != nil {
			return err
		}
	}
	return d.readCredentials(ctx, s)
}

// remembered returns what a definition says about what is installed already, without its versions,
// which are large.
func remembered(definition *v1alpha1.ApplicationDefinition) *v1alpha1.ApplicationDefinition {
	kept := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}
	kept.Spec = v1alpha1.ApplicationDefinitionSpec{
		Description: definition.Spec.Description, DocumentationURL: definition.Spec.DocumentationURL, Method: definition.Spec.Method,
		DefaultNamespace: definition.Spec.DefaultNamespace, DefaultDeployOptions: definition.Spec.DefaultDeployOptions,
		ForbidOrphan: definition.Spec.ForbidOrphan, Enforced: definition.Spec.Enforced,
	}
	return kept
}

// unresolved waits for a definition that was never there, and stalls if it is gone: what was
// installed keeps running.
func (s *scope) unresolved(format string, args ...any) error {
	installed := s.inst.Status.Application
	wanted := s.inst.Spec.ApplicationRef.Version
	if installed != nil && s.inst.Status.Inventory != nil && (wanted == "" || v1alpha1.SameVersion(wanted, installed.Version)) {
		return reconcile.Stalled(v1alpha1.DefinitionGoneReason, format+"; what is installed keeps running, delete the installation to uninstall it", args...)
	}
	return reconcile.Waiting(v1alpha1.DefinitionNotFoundReason, 0, format, args...)
}

// withdraw deletes the installation of a version that was removed by force, with what it has installed: that
// is not for the users of the cluster to keep.
func (d *driver) withdraw(ctx context.Context, s *scope, version string) error {
	if s.inst.Spec.DeletionPolicy == v1alpha1.InstallationOrphan {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Delete"}}`))
		if err := d.client.Patch(ctx, s.inst.DeepCopy(), patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			return fmt.Errorf("set spec.deletionPolicy of the installation of the removed version %q: %w", version, err)
		}
	}
	if err := d.client.Delete(ctx, s.inst, client.Preconditions{UID: &s.inst.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete installation of the removed version %q: %w", version, err)
	}
	return reconcile.Waiting(v1alpha1.DeletingReason, 0,
		"version %q was removed from ApplicationDefinition %q by %s", version, s.definition.Name, v1alpha1.ForceRemoveAnnotation)
}

func versions(definition *v1alpha1.ApplicationDefinition) string {
	names := make([]string, 0, len(definition.Spec.Versions))
	for _, v := range definition.Spec.Versions {
		names = append(names, v.Version)
	}
	return strings.Join(names, ", ")
}

// readCredentials reads the Secrets that the source names, on the hub.
func (d *driver) readCredentials(ctx context.Context, s *scope) error {
	source := s.source.version.Template.Source
	var credentials *v1alpha1.SourceCredentials
	switch {
	case source.Helm != nil:
		credentials = source.Helm.Credentials
		if ca := source.Helm.CASecretRef; ca != nil {
			secret, err := d.sourceSecret(ctx, ca.Name, false)
			if err != nil {
				return err
			}
			s.source.authorities = secret
		}
	case source.Git != nil:
		credentials = source.Git.Credentials
	}
	if credentials == nil {
		return nil
	}
	secret, err := d.sourceSecret(ctx, credentials.SecretRef.Name, true)
	s.source.credentials = secret
	return err
}

// credentialsNamespace returns the namespace of the hub that source credentials are read from.
func (d *driver) credentialsNamespace() string {
	if d.CredentialsOfCluster {
		return d.cluster.Name().Namespace
	}
	return d.SystemNamespace
}

// sourceSecret reads a Secret of the hub. Credentials must be annotated as such, so that no user can point a
// definition at an arbitrary Secret of ours. Outside of the system namespace, it has to be a copy of the one
// there: others may write Secrets in that namespace, and are not to choose what a source is asked with.
func (d *driver) sourceSecret(ctx context.Context, name string, annotated bool) (*content.Content, error) {
	key := types.NamespacedName{Namespace: d.credentialsNamespace(), Name: name}
	copied := key.Namespace != d.SystemNamespace
	secret, err := d.Secrets.Get(ctx, content.Secret, key)
	switch {
	case apierrors.IsNotFound(err) && copied:
		return nil, reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0,
			"the definition names Secret %s, of which namespace %s of the hub has no copy: there is one if Secret %s/%s exists and has the annotation %s",
			name, key.Namespace, d.SystemNamespace, name, v1alpha1.SecretTypeAnnotation)
	case apierrors.IsNotFound(err):
		return nil, reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0, "the definition names Secret %s, which does not exist on the hub", key)
	}
	if err != nil {
		return nil, reconcile.Failed(v1alpha1.SecretNotFoundReason, "read source credentials: %w", err)
	}
	original := apply.Owner{HubID: d.HubID, Kind: string(content.Secret), Namespace: d.SystemNamespace, Name: name}
	if copied && secret.Annotations[v1alpha1.OwnerAnnotation] != original.String() {
		return nil, reconcile.Waiting(v1alpha1.InvalidSecretReason, 0,
			"the definition names Secret %s, but Secret %s of the hub is not a copy of %s/%s: delete it", name, key, d.SystemNamespace, name)
	}
	if _, ok := secret.Annotations[v1alpha1.SecretTypeAnnotation]; annotated && !ok {
		return nil, reconcile.Waiting(v1alpha1.InvalidSecretReason, 0,
			"the definition names Secret %s, which lacks the annotation %s", key, v1alpha1.SecretTypeAnnotation)
	}
	return secret, nil
}
