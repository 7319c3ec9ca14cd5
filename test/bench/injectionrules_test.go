package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// ruleNamespaces is how many namespaces get their first Application in each run, and lose it
	// again, and rulePace how many per second.
	ruleNamespaces = 100
	rulePace       = 10
	// churning is how many Applications come and go in each run, and churnPace how many per second.
	// Each exists for churnLife.
	churning  = 500
	churnPace = 50
	churnLife = time.Second
)

// injectionRules measures how long after the first Application of a namespace is created the API
// server is configured to send ConfigMaps of that namespace to waybill-webhook, and how long after the
// last one is deleted it is configured to stop. It also measures how often the configuration is written
// while Applications that list the same kinds come and go.
func injectionRules(b *testing.B, s *results) {
	h := startHub(b, false)
	for i := range ruleNamespaces {
		h.namespace(b, ruleNamespace(i))
	}
	process := startWebhook(b, h)
	rules := h.view(b, mutatingConfigurations, "")
	var begun, ended, writes samples
	for b.Loop() {
		begun = append(begun, h.changeRules(b, rules, h.createShop, true)...)
		ended = append(ended, h.changeRules(b, rules, h.deleteShop, false)...)
		writes.add(h.churn(b, rules))
	}
	s.atMost("", begun.percentile(99), "s at p99", 1)
	s.atMost("removal", ended.percentile(99), "s at p99", 1)
	s.inform("p50", begun.median(), "s")
	s.inform("changes", float64(len(begun)+len(ended)), "changes")
	s.atMost("writes", writes.max(), "per second", maxRuleWrites)
	s.rss(process)
}

// maxRuleWrites is how often the configuration may be written, per second, however many
// Applications change: at most every 400 ms, and once more at the end.
const maxRuleWrites = 3

func ruleNamespace(i int) string { return fmt.Sprintf("rules-%02d", i%ruleNamespaces) }

func (h *hub) createShop(ctx context.Context, i int) error {
	return h.createLister(ctx, ruleNamespace(i), "shop")
}

func (h *hub) deleteShop(ctx context.Context, i int) error {
	return h.client.Resource(applications).Namespace(ruleNamespace(i)).Delete(ctx, "shop", metav1.DeleteOptions{})
}

// createLister creates an Application that lists ConfigMaps.
func (h *hub) createLister(ctx context.Context, namespace, name string) error {
	_, err := h.client.Resource(applications).Namespace(namespace).Create(ctx, application(namespace, name, "ConfigMap"), metav1.CreateOptions{})
	return err
}

// changeRules does something in each namespace, at a pace, and returns for each how long it took
// from the answer of the API server until the configuration includes the namespace, or no longer
// does.
func (h *hub) changeRules(b *testing.B, rules *observe.View, do step, included bool) samples {
	b.Helper()
	took := make(samples, ruleNamespaces)
	paced(b, ruleNamespaces, rulePace, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return err
		}
		began := time.Now()
		err := rules.Until(ctx, 1, func(o *observe.Object) bool {
			return slices.Contains(injectedNamespaces(o), ruleNamespace(i)) == included
		})
		took[i] = time.Since(began).Seconds()
		return err
	})
	return took
}

// churn creates and deletes Applications, and returns how often per second the configuration was
// written meanwhile.
func (h *hub) churn(b *testing.B, rules *observe.View) float64 {
	b.Helper()
	before := h.mark(b)
	began := time.Now()
	paced(b, churning, churnPace, func(ctx context.Context, i int) error {
		namespace, name := ruleNamespace(i), itemName(i)
		if err := h.createLister(ctx, namespace, name); err != nil {
			return err
		}
		select {
		case <-time.After(churnLife):
		case <-ctx.Done():
		}
		return h.client.Resource(applications).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	})
	await(b, rules, 1, func(o *observe.Object) bool { return len(injectedNamespaces(o)) == 0 })
	took := time.Since(began).Seconds()
	return h.requestsOf(b, webhookUser, before).count(of(mutatingConfigurations), env.Writes) / took
}

// injectedNamespaces returns the namespaces whose ConfigMaps a webhook configuration includes.
func injectedNamespaces(o *observe.Object) []string {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks") // none includes nothing
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok || !listsConfigMaps(webhook) {
			continue
		}
		expressions, _, _ := unstructured.NestedSlice(webhook, "namespaceSelector", "matchExpressions")
		if len(expressions) == 1 {
			expression, _ := expressions[0].(map[string]any)
			namespaces, _, _ := unstructured.NestedStringSlice(expression, "values")
			return namespaces
		}
	}
	return nil
}

func listsConfigMaps(webhook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	return slices.ContainsFunc(rules, func(r any) bool {
		rule, _ := r.(map[string]any)
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		return slices.Contains(resources, configMaps.Resource)
	})
}

func TestInjectedNamespaces(t *testing.T) {
	webhook := func(resource string, namespaces ...any) any {
		return map[string]any{
			"rules":             []any{map[string]any{"resources": []any{resource}}},
			"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"values": namespaces}}},
		}
	}
	configuration := func(webhooks ...any) *observe.Object {
		return &observe.Object{Object: map[string]any{"webhooks": webhooks}}
	}
	stopAfterRow := map[string]any{"rules": []any{map[string]any{"resources": []any{"applications"}}}, "namespaceSelector": map[string]any{}}
	assert.Equal(t, []string{"a", "b"}, injectedNamespaces(configuration(stopAfterRow, webhook("secrets", "c"), webhook("configmaps", "a", "b"))))
	assert.Empty(t, injectedNamespaces(configuration(stopAfterRow)))
}
