package kubernetesapplication

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// W48, C57: of an application that brings an operator along, the objects that the operator has
// to release go first.
func TestFirstToGo(t *testing.T) {
	made := func(name, manifest string) *v1alpha1.KubernetesApplicationResource {
		kar := &v1alpha1.KubernetesApplicationResource{}
		kar.Name, kar.Spec.Template = name, templateOf(t, manifest).Spec.Template
		return kar
	}
	crd := made("crd", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","names":{"kind":"Widget"}}}`)
	operator := made("operator", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"operator"}}`)
	widget := made("widget", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"}}`)
	gadget := made("gadget", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"one"}}`)
	type list = []*v1alpha1.KubernetesApplicationResource
	for reason, tc := range map[string]struct{ all, want list }{
		"objects of a kind that another defines": {list{crd, operator, widget, gadget}, list{widget}},
		"then all that are left":                 {list{crd, operator, gadget}, list{crd, operator, gadget}},
		"nothing defines the kind":               {list{operator, widget}, list{operator, widget}},
		"none is left":                           {nil, nil},
	} {
		assert.Equal(t, tc.want, firstToGo(tc.all), reason)
	}
}
