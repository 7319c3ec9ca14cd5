package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/registration"
)

// protectedValuesPath names the rules of Secrets and ConfigMaps in the path that they are served at.
const protectedValuesPath = "values"

// changesValues matches requests that create an object, or change its content or the label that protects
// it. Everything else passes unasked, so that nothing delays the removal of a finalizer.
const changesValues = `oldObject == null || object.?data != oldObject.?data || object.?binaryData != oldObject.?binaryData` +
	` || object.metadata.?labels[?"` + v1alpha1.ValuesLabel + `"] != oldObject.metadata.?labels[?"` + v1alpha1.ValuesLabel + `"]`

// protected registers the rules for a kind of object that values come from. Only objects with the label
// are concerned, before the request or after it: other writes are not delayed.
func protected(resource string, operations []admissionregistrationv1.OperationType) registration.Hook {
	return registration.Hook{
		Resource: resource, Of: &schema.GroupVersion{Version: "v1"},
		Path: validatePath(protectedValuesPath), Operations: operations, Scope: admissionregistrationv1.NamespacedScope,
		Labels:    map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected},
		Condition: changesValues,
	}
}

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations;kubernetesclusters,verbs=list

// protectedValues are the rules of Secrets and ConfigMaps with the label that protects them: what they
// hold may decide what is installed with Waybill's own rights, so a user who changes that, or the label,
// must be allowed to install it. Deletions are not checked.
type protectedValues struct {
	access *access
	users  *valuesUsers
	// live reads KubernetesClusters, past any cache.
	live client.Reader
}

var _ admission.Handler = &protectedValues{}

// content is what decides whether a change matters. It is never shown: it may be secret.
type content struct {
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Data       map[string]string `json:"data"`
	BinaryData map[string]string `json:"binaryData"`
}

// Handle implements admission.Handler.
func (p *protectedValues) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	ctx = admission.NewContextWithRequest(ctx, req)
	_, err := observe(ctx, req.Kind.Kind, req.Operation, func(ctx context.Context) (admission.Warnings, error) {
		return nil, p.decide(ctx, req)
	})
	return responseTo(err)
}

func (p *protectedValues) decide(ctx context.Context, req admission.Request) error {
	same, err := unchanged(req)
	if err != nil || same {
		return err
	}
	resource := schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}
	if done, err := p.decideList(ctx, req, resource); done || err != nil {
		return err
	}
	err = p.access.checkOn(ctx, resource, req.Name, []need{installAny(req.Namespace)})
	if err == nil || !apierrors.IsForbidden(err) {
		return err // a user who may install any definition does not wait for the installations to be read
	}
	wanted, err := p.needs(ctx, req)
	if err != nil {
		return err
	}
	return p.access.checkOn(ctx, resource, req.Name, wanted)
}

// decideList decides about a ConfigMap that a KubernetesCluster takes its list of installations from, and reports
// whether it is one: what it will hold decides what is installed there.
func (p *protectedValues) decideList(ctx context.Context, req admission.Request, resource schema.GroupResource) (bool, error) {
	if resource.Resource != "configmaps" {
		return false, nil
	}
	listed, err := namesList(ctx, p.live, req.Namespace, req.Name)
	if err != nil {
		return false, apierrors.NewServiceUnavailable("cannot look up which KubernetesClusters take installations from it, try again: " + err.Error())
	}
	if !listed {
		return false, nil
	}
	return true, p.access.checkOn(ctx, resource, req.Name, []need{
		installAny(req.Namespace), needs("a KubernetesCluster takes its installations from it", usesClusters(req.Namespace)),
	})
}

// unchanged reports whether an update changes neither the content nor the label.
func unchanged(req admission.Request) (bool, error) {
	if req.Operation != admissionv1.Update {
		return false, nil
	}
	var is, was content
	if json.Unmarshal(req.Object.Raw, &is) != nil || json.Unmarshal(req.OldObject.Raw, &was) != nil {
		return false, apierrors.NewBadRequest("cannot decode the object") // why would quote it
	}
	return is.Metadata.Labels[v1alpha1.ValuesLabel] == was.Metadata.Labels[v1alpha1.ValuesLabel] &&
		apiequality.Semantic.DeepEqual(is.Data, was.Data) && apiequality.Semantic.DeepEqual(is.BinaryData, was.BinaryData), nil
}

// needs returns the right to install each definition whose installations take values from the object;
// if none does yet, the right to install any, since any may.
func (p *protectedValues) needs(ctx context.Context, req admission.Request) ([]need, error) {
	var wanted []need
	err := p.users.each(ctx, req.Namespace, func(inst *valuesUser) {
		if slices.ContainsFunc(inst.Spec.ValuesFrom, func(from v1alpha1.ValuesReference) bool {
			return from.Kind == req.Kind.Kind && from.Name == req.Name
		}) {
			named := installs(req.Namespace, inst.Spec.ApplicationRef.Name)
			wanted = distinct(append(wanted, needs(fmt.Sprintf("ApplicationInstallation %s takes values from it", inst.Metadata.Name), named)))
		}
	})
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("cannot look up which installations take values from it, try again: " + err.Error())
	}
	if len(wanted) == 0 {
		wanted = append(wanted, installAny(req.Namespace))
	}
	return wanted, nil
}

// installAny returns the right to install all definitions.
func installAny(namespace string) need {
	return needs(fmt.Sprintf("the label %s makes it a source of values for any installation", v1alpha1.ValuesLabel), installs(namespace, ""))
}

func installs(namespace, definition string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: verbInstall, Group: v1alpha1.Group, Resource: applicationDefinitionResource, Namespace: namespace, Name: definition,
	}
}
