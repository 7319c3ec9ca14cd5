package registration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// Injection registers the webhook for namespaced resources other than our own kinds, in some
// namespaces. No two injections share both a resource and a namespace.
type Injection struct {
	// Resources in any of their versions, sorted by group and name.
	Resources []schema.GroupResource

	// Namespaces that are included, sorted; with Every, those that are excluded.
	Namespaces []string

	// Every includes all namespaces but Namespaces, even those that do not exist yet.
	Every bool
}

const injectionPrefix = "inject-"

// undecided excludes objects that were decided on before: those with an annotation that names their
// Application, if an update changes neither labels nor annotations. Most updates by controllers are
// of that kind.
const undecided = `oldObject == null` +
	` || !has(object.metadata.annotations) || !('` + v1alpha1.ApplicationAnnotation + `' in object.metadata.annotations)` +
	` || !has(oldObject.metadata.annotations) || object.metadata.annotations != oldObject.metadata.annotations` +
	` || has(object.metadata.labels) != has(oldObject.metadata.labels)` +
	` || (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)`

// CompareResources orders resources by group and name.
func CompareResources(a, b schema.GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// webhook returns the entry, with the given timeout and with every default written out, like the others. It blocks no write:
// failures are ignored. If another webhook changes the object afterwards, it is called again
// (IfNeeded), which is safe because it is idempotent.
func (i Injection) webhook(client admissionregistrationv1.WebhookClientConfig, timeout time.Duration) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    i.name(),
		ClientConfig:            client,
		Rules:                   i.rules(),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       i.namespaceSelector(),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(timeout / time.Second)),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: append(matchConditions(notBeingDeleted),
			admissionregistrationv1.MatchCondition{Name: "undecided", Expression: undecided}),
	}
}

// name returns a name that stays the same as long as the resources do.
func (i Injection) name() string {
	digest := sha256.New()
	for _, r := range i.Resources {
		digest.Write([]byte(r.String() + "\n"))
	}
	return injectionPrefix + hex.EncodeToString(digest.Sum(nil)[:5]) + "." + v1alpha1.Group
}

// rules returns one rule per group.
func (i Injection) rules() []admissionregistrationv1.RuleWithOperations {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, r := range i.Resources {
		if n := len(rules); n > 0 && rules[n-1].APIGroups[0] == r.Group {
			rules[n-1].Resources = append(rules[n-1].Resources, r.Resource)
			continue
		}
		rules = append(rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{"*"}, Resources: []string{r.Resource},
				Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		})
	}
	return rules
}

func (i Injection) namespaceSelector() *metav1.LabelSelector {
	operator := metav1.LabelSelectorOpIn
	if i.Every {
		operator = metav1.LabelSelectorOpNotIn
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: i.Namespaces},
	}}
}

// injections returns those that a configuration has registered.
func injections(registered *admissionregistrationv1.MutatingWebhookConfiguration) []Injection {
	if registered == nil {
		return nil
	}
	var found []Injection
	for _, w := range registered.Webhooks {
		if !strings.HasPrefix(w.Name, injectionPrefix) || w.NamespaceSelector == nil {
			continue
		}
		expressions := w.NamespaceSelector.MatchExpressions // others may have added to them
		at := slices.IndexFunc(expressions, func(e metav1.LabelSelectorRequirement) bool { return e.Key == corev1.LabelMetadataName })
		if at < 0 {
			continue
		}
		i := Injection{Namespaces: expressions[at].Values, Every: expressions[at].Operator == metav1.LabelSelectorOpNotIn}
		for _, rule := range w.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					i.Resources = append(i.Resources, schema.GroupResource{Group: group, Resource: resource})
				}
			}
		}
		slices.SortFunc(i.Resources, CompareResources)
		found = append(found, i)
	}
	return found
}
