package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
// are concerned, before the request or after it: nobody else pays for it.
func protected(resource string, operations []admissionregistrationv1.OperationType) registration.Hook {
	return registration.Hook{
		Resource: resource, Of: &schema.GroupVersion{Version: "v1"},
		Path: validatePath(protectedValuesPath), Operations: operations, Scope: admissionregistrationv1.NamespacedScope,
		Labels:    map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected},
		Condition: changesValues,
	}
}

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=list

// protectedValues are the rules of Secrets and ConfigMaps with the label that protects them: what they
// hold may decide what is installed with Waybill's own rights, so whoever changes that, or the label, must
// be allowed to install it. Deletions are not asked about.
type protectedValues struct {
	access *access
	reader client.Reader
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
	if err == nil {
		return admission.Allowed("")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	result := status.Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &result}}
}

func (p *protectedValues) decide(ctx context.Context, req admission.Request) error {
	same, err := unchanged(req)
	if err != nil || same {
		return err
	}
	wanted, err := p.needs(ctx, req)
	if err != nil {
		return err
	}
	return p.access.checkOn(ctx, schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Name, wanted)
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
	install := authorizationv1.ResourceAttributes{
		Verb: verbInstall, Group: v1alpha1.Group, Resource: applicationDefinitionResource, Namespace: req.Namespace,
	}
	var wanted []need
	err := p.each(ctx, req.Namespace, func(inst *v1alpha1.ApplicationInstallation) {
		if slices.ContainsFunc(inst.Spec.ValuesFrom, func(from v1alpha1.ValuesReference) bool {
			return from.Kind == req.Kind.Kind && from.Name == req.Name
		}) {
			named := install
			named.Name = inst.Spec.ApplicationRef.Name
			wanted = distinct(append(wanted, needs(fmt.Sprintf("ApplicationInstallation %s takes values from it", inst.Name), named)))
		}
	})
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("cannot look up which installations take values from it, try again: " + err.Error())
	}
	if len(wanted) == 0 {
		wanted = append(wanted, needs(fmt.Sprintf("the label %s makes it a source of values for any installation", v1alpha1.ValuesLabel), install))
	}
	return wanted, nil
}

// pageSize is how many installations are held at a time: each may have half a megabyte of values.
const pageSize = 50

// each calls visit for every installation of a namespace; for none in a cluster without the kind.
func (p *protectedValues) each(ctx context.Context, namespace string, visit func(*v1alpha1.ApplicationInstallation)) error {
	page := &v1alpha1.ApplicationInstallationList{}
	for {
		err := p.reader.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(page.Continue))
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
	}
}
