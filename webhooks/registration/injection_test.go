package registration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// C51: a process that does not know yet what to register goes on with what is registered.
func TestInjections_areReadBack(t *testing.T) {
	wanted := []Injection{
		{Namespaces: []string{"a", "b"}, Resources: []schema.GroupResource{
			{Resource: "configmaps"}, {Resource: "services"}, {Group: "apps", Resource: "deployments"}, {Group: "batch", Resource: "jobs"},
		}},
		{Namespaces: []string{"waybill-system"}, Every: true, Resources: []schema.GroupResource{{Resource: "services"}}},
	}
	hooks := Hooks{Mutating: []Hook{{Resource: "as", Path: "/default/as"}}, InjectPath: "/inject"}
	webhooks := hooks.mutating(ServiceEndpoint("waybill-system", "waybill-webhook"), []byte("x"), wanted, 3*time.Second)
	assert.Len(t, webhooks, 3)
	assert.ElementsMatch(t, wanted, injections(&admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: webhooks}))
	assert.Empty(t, injections(nil))
	for i := range webhooks {
		selector := webhooks[i].NamespaceSelector
		selector.MatchExpressions = append(selector.MatchExpressions, enforced)
	}
	assert.ElementsMatch(t, wanted, injections(&admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: webhooks}), "others may have added to it")

	for _, w := range webhooks {
		if w.Name == wanted[0].name() {
			assert.Len(t, w.Rules, 3, "one for each group")
			assert.EqualValues(t, 3, *w.TimeoutSeconds)
		}
	}
	more := wanted[0]
	more.Namespaces = append(more.Namespaces, "c")
	assert.Equal(t, wanted[0].name(), more.name(), "its name says which resources, not where")
	assert.NotEqual(t, wanted[0].name(), wanted[1].name())
}
