package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
)

// newStatusFixture applies for an owner whose objects are kept with their status.
func newStatusFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.owner.Kind = "KubernetesApplicationResource"
	notified := make(chan apply.Owner, 10000)
	f.notified = notified
	f.Applier = apply.New(t.Context(), f.target, apply.Options{
		Notify: func(o apply.Owner) { notified <- o },
		Status: func(o apply.Owner) bool { return o.Kind == "KubernetesApplicationResource" },
	})
	return f
}

// awaitStatus waits, notice by notice, until the status of an object is as wanted.
func (f *fixture) awaitStatus(id manifest.ID, wanted func(apply.Status) bool) {
	f.t.Helper()
	for {
		seen, _ := f.Observe(f.owner)
		if status, known := seen.Statuses[id.Key()]; known && wanted(status) {
			return
		}
		f.awaitNotice()
	}
}

func jsonEq(text string) func(apply.Status) bool {
	return func(s apply.Status) bool { return string(s.JSON) == text }
}

const serviceText = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}"

// W19, W43, C58: the status comes by watch, word for word, and costs no request.
func TestStatus_comesByWatch(t *testing.T) {
	f := newStatusFixture(t)
	result := f.mustApply(nil, parse(t, serviceText))
	id := result.Inventory[0]
	f.awaitStatus(id, jsonEq(`{"loadBalancer":{}}`))
	f.requests.take()

	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	f.awaitStatus(id, jsonEq(`{"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ipMode":"VIP"}]}}`))
	seen, _ := f.Observe(f.owner)
	assert.True(t, seen.Settled, "a status is no drift")
	f.mustApply(result.Inventory, parse(t, serviceText))
	assert.Empty(t, f.requests.take())
}

// W19: a write of ours does not make the status unknown.
func TestStatus_outlivesAnApply(t *testing.T) {
	f := newStatusFixture(t)
	result := f.mustApply(nil, parse(t, serviceText))
	id := result.Inventory[0]
	f.awaitStatus(id, jsonEq(`{"loadBalancer":{}}`))
	f.mustApply(result.Inventory, parse(t, strings.Replace(serviceText, "port: 80", "port: 81", 1)))
	seen, _ := f.Observe(f.owner)
	assert.Contains(t, seen.Statuses, id.Key())
}

// C58
func TestStatus_tooLarge(t *testing.T) {
	f := newStatusFixture(t)
	id := f.mustApply(nil, parse(t, serviceText)).Inventory[0]
	var ports []string
	for i := range 3000 {
		ports = append(ports, fmt.Sprintf(`{"port":%d,"protocol":"TCP"}`, i+1))
	}
	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ports":[`+strings.Join(ports, ",")+`]}]}}}`)
	f.awaitStatus(id, func(s apply.Status) bool { return s.TooLarge && s.JSON == nil })
	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":null}}}`)
	f.awaitStatus(id, jsonEq(`{"loadBalancer":{}}`))
}

// W20: kinds without a status are watched as metadata, and have none.
func TestStatus_ofKindsWithout(t *testing.T) {
	f := newStatusFixture(t)
	f.mustApply(nil, configMap(t, "settings", "one"))
	seen, known := f.Observe(f.owner)
	require.True(t, known)
	assert.Empty(t, seen.Statuses)
	f.assertQuiet("settings")
}

// Only those whose status is asked for are told of it, and only they pay for it.
func TestStatus_ofOtherOwners(t *testing.T) {
	f := newStatusFixture(t)
	f.owner.Kind = "GitSync"
	f.mustApply(nil, parse(t, serviceText), configMap(t, "settings", "one"))
	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	f.assertQuiet("settings")
	seen, _ := f.Observe(f.owner)
	assert.Empty(t, seen.Statuses)
}

// C12
func TestNamespaced(t *testing.T) {
	f := newFixture(t)
	cases := map[string]struct {
		kind              schema.GroupVersionKind
		namespaced, known bool
	}{
		"Namespaced":    {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, true, true},
		"ClusterScoped": {schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, false, true},
		"Unknown":       {schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Nothing"}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespaced, known, err := f.Namespaced(t.Context(), tc.kind)
			require.NoError(t, err)
			assert.Equal(t, tc.namespaced, namespaced)
			assert.Equal(t, tc.known, known)
		})
	}
}
