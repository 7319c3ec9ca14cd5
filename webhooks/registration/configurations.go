package registration

import (
	"cmp"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// ConfigurationName is the name of both webhook configurations.
const ConfigurationName = "waybill"

// Timeout is how long an API server waits for an answer about one of our kinds. Handlers must
// decide before it expires.
const Timeout = 10 * time.Second

// notBeingDeleted excludes every object that is being deleted: nothing may delay the removal of a
// finalizer. Deletions have only an old object.
const notBeingDeleted = "!has((object == null ? oldObject : object).metadata.deletionTimestamp)"

// wantsSomethingElse matches changes of the spec while an object is being deleted: controllers act
// on the spec until the object is gone, so it must not change to one that would never have been
// allowed.
const wantsSomethingElse = "(object != null && oldObject != null && object.?spec != oldObject.?spec)"

// Hook registers one resource at one path.
type Hook struct {
	// Resource in the plural. Subresources are never included: status and scale writes always pass.
	Resource string

	// Of is the group and version of the resource. Default: ours.
	Of *schema.GroupVersion

	// Labels select the objects: those that carry them, and those that did before. Default: all.
	Labels map[string]string

	// Condition is a CEL expression of the requests that the webhook is called for. Default: those
	// about objects that are not being deleted, or that change the spec of one that is.
	Condition string

	// Path that the server answers at.
	Path string

	// Operations that the webhook is called for.
	Operations []admissionregistrationv1.OperationType

	// Scope of the resource.
	Scope admissionregistrationv1.ScopeType

	// Advises says that the webhook answers with warnings alone: requests go on when there is no
	// answer within AdviceTimeout. It is of a name of its own, beside that of the webhook which
	// decides.
	Advises bool
}

// AdviceTimeout is how long an API server waits for warnings.
const AdviceTimeout = 2 * time.Second

// Hooks are all hooks that are registered. A version that registers a path no more has to answer there
// for one version yet: during an upgrade, its predecessor fills the configurations.
type Hooks struct {
	Mutating   []Hook
	Validating []Hook

	// InjectPath is the path that the server answers at for every Injection.
	InjectPath string
}

// mutating returns the entries of the mutating configuration, with every default written out, so
// that they compare equal to what the API server returns. The timeout is that of the injections.
func (h Hooks) mutating(e Endpoint, bundle []byte, inject []Injection, timeout time.Duration) []admissionregistrationv1.MutatingWebhook {
	var webhooks []admissionregistrationv1.MutatingWebhook
	for _, hook := range h.Mutating {
		webhooks = append(webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    "default." + hook.Resource + "." + v1alpha1.Group,
			ClientConfig:            e.clientConfig(hook.Path, bundle),
			Rules:                   hook.rules(),
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(Timeout / time.Second)),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			MatchConditions:         matchConditions(notBeingDeleted + " || " + wantsSomethingElse),
		})
	}
	for _, i := range inject {
		webhooks = append(webhooks, i.webhook(e.clientConfig(h.InjectPath, bundle), timeout))
	}
	slices.SortFunc(webhooks, func(a, b admissionregistrationv1.MutatingWebhook) int { return cmp.Compare(a.Name, b.Name) })
	return webhooks
}

// validating is like mutating.
func (h Hooks) validating(e Endpoint, bundle []byte) []admissionregistrationv1.ValidatingWebhook {
	var webhooks []admissionregistrationv1.ValidatingWebhook
	for _, hook := range h.Validating {
		name, policy, timeout := "validate.", admissionregistrationv1.Fail, Timeout
		if hook.Advises {
			name, policy, timeout = "advise.", admissionregistrationv1.Ignore, AdviceTimeout
		}
		webhooks = append(webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:                    name + hook.Resource + "." + v1alpha1.Group,
			ClientConfig:            e.clientConfig(hook.Path, bundle),
			Rules:                   hook.rules(),
			FailurePolicy:           ptr.To(policy),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: hook.Labels},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(timeout / time.Second)),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         hook.conditions(),
		})
	}
	slices.SortFunc(webhooks, func(a, b admissionregistrationv1.ValidatingWebhook) int { return cmp.Compare(a.Name, b.Name) })
	return webhooks
}

// conditions returns when the webhook is called.
func (h Hook) conditions() []admissionregistrationv1.MatchCondition {
	if h.Condition == "" {
		return matchConditions(notBeingDeleted + " || " + wantsSomethingElse)
	}
	return []admissionregistrationv1.MatchCondition{{Name: "concerned", Expression: h.Condition}}
}

func (h Hook) rules() []admissionregistrationv1.RuleWithOperations {
	of := v1alpha1.GroupVersion
	if h.Of != nil {
		of = *h.Of
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: h.Operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{of.Group},
			APIVersions: []string{of.Version},
			Resources:   []string{h.Resource},
			Scope:       ptr.To(h.Scope),
		},
	}}
}

func matchConditions(expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "not-being-deleted", Expression: expression}}
}
