package clusters

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// C38: whatever is switched on in the values of the chart, the rights are enough for what it consists of then.
func TestAgentRights_coverEverySwitchOfTheChart(t *testing.T) {
	const namespace = v1alpha1.DefaultSystemNamespace
	granted, err := agentRights(t.Context(), namespace)
	require.NoError(t, err)
	own, err := ownChart(t.Context())
	require.NoError(t, err)
	found := switches(own.Values)
	require.Contains(t, found, "webhook.podDryRun")
	for _, name := range found {
		values := helm.MergeValues(turned(name), map[string]any{"roles": map[string]any{"hub": false, "driver": false}})
		rendered, err := helm.Render(t.Context(), own.Chart, helm.Options{ReleaseName: "waybill", Namespace: namespace, Values: values})
		if name == "dashboard.enabled" {
			assert.ErrorContains(t, err, "dashboard.url", "it takes more to have a dashboard, which is for hubs")
			continue
		}
		require.NoError(t, err, name)
		for _, o := range rendered.Objects {
			among := granted.here
			if o.GetNamespace() == "" {
				among = granted.whole
			}
			assert.True(t, covered(among, o), "%s: %s", name, o.ID())
		}
	}
}

// switches returns the paths of the values that are true or false.
func switches(values map[string]any) []string {
	var found []string
	for name, value := range values {
		switch value := value.(type) {
		case bool:
			found = append(found, name)
		case map[string]any:
			for _, below := range switches(value) {
				found = append(found, name+"."+below)
			}
		}
	}
	slices.Sort(found)
	return found
}

// turned returns values with one switched on.
func turned(path string) map[string]any {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		return map[string]any{name: true}
	}
	return map[string]any{name: turned(rest)}
}

// covered reports whether an object may be created, read, changed and deleted and, if it is a role, have any rules.
func covered(granted []rbacv1.PolicyRule, o manifest.Object) bool {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	wanted := []string{"create", "list", "watch", "get", "patch", "delete"}
	if strings.HasSuffix(o.GetKind(), "Role") {
		wanted = append(wanted, "escalate", "bind")
	}
	return !slices.ContainsFunc(wanted, func(verb string) bool {
		return !slices.ContainsFunc(granted, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, plural.Group) && slices.Contains(r.Resources, plural.Resource) && slices.Contains(r.Verbs, verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, o.GetName()))
		})
	})
}

// The names alone may be changed: RBAC cannot limit what is created, listed and watched to names.
func TestAgentRights_areLimitedToNames(t *testing.T) {
	granted, err := agentRights(t.Context(), "waybill-system")
	require.NoError(t, err)
	for _, r := range append(granted.here, granted.whole...) {
		if len(r.ResourceNames) == 0 {
			assert.Equal(t, []string{"create", "list", "watch"}, r.Verbs, "%v", r.Resources)
			continue
		}
		for _, name := range r.ResourceNames {
			assert.True(t, strings.HasPrefix(name, "waybill"), name)
		}
	}
}
