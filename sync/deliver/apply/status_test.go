package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// statusFixture applies for an owner whose objects are kept with their status.
type statusFixture struct {
	*fixture
	// reported has the notices of another status.
	reported chan apply.Owner
}

func newStatusFixture(t *testing.T) *statusFixture {
	t.Helper()
	return statusFixtureOf(newFixture(t))
}

func statusFixtureOf(base *fixture) *statusFixture {
	f := &statusFixture{fixture: base}
	f.owner.Kind = "KubernetesApplicationResource"
	f.restart()
	return f
}

// restart makes a new Applier, as a new process would.
func (f *statusFixture) restart() {
	notified, reported := make(chan apply.Owner, 10000), make(chan apply.Owner, 10000)
	f.notified, f.reported = notified, reported
	f.Applier = apply.New(f.t.Context(), f.target, apply.Options{
		Notify:       func(o apply.Owner) { notified <- o },
		NotifyStatus: func(o apply.Owner) { reported <- o },
		Status:       func(o apply.Owner) bool { return o.Kind == "KubernetesApplicationResource" },
	})
}

// awaitStatus waits, notice by notice, until the status of an object is as wanted.
func (f *statusFixture) awaitStatus(id manifest.ID, wanted func(apply.Status) bool) {
	f.t.Helper()
	for {
		seen, _ := f.Observe(f.owner)
		if status, known := seen.Statuses[id.Key()]; known && wanted(status) {
			return
		}
		f.awaitReport()
	}
}

// awaitReport waits until the owner of the fixture is notified of another status.
func (f *statusFixture) awaitReport() {
	f.t.Helper()
	select {
	case owner := <-f.reported:
		require.Equal(f.t, f.owner, owner)
	case <-time.After(patience):
		require.Fail(f.t, "no notice of a status")
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
	assert.Empty(t, f.notified, "nor anything to apply for")
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

// Only those whose status is asked for are notified of it, and only they pay for it.
func TestStatus_ofOtherOwners(t *testing.T) {
	f := newStatusFixture(t)
	f.owner.Kind = "GitSync"
	f.mustApply(nil, parse(t, serviceText), configMap(t, "settings", "one"))
	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	f.assertQuiet("settings")
	seen, _ := f.Observe(f.owner)
	assert.Empty(t, seen.Statuses)
	assert.Empty(t, f.reported)
}

// W19: the status of an object comes also where what is wanted of it now is refused, and nothing
// was applied since the start of the process.
func TestStatus_ofWhatIsRefused(t *testing.T) {
	f := newStatusFixture(t)
	first := f.mustApply(nil, parse(t, serviceText))
	f.restart()
	refused := f.apply(first.Inventory, parse(t, strings.Replace(serviceText, "port: 80", "port: 70000", 1)))
	require.Len(t, refused.Problems, 1)
	f.awaitStatus(first.Inventory[0], jsonEq(`{"loadBalancer":{}}`))
	for len(f.reported) > 0 {
		<-f.reported
	}
	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	f.awaitReport()
	f.awaitStatus(first.Inventory[0], jsonEq(`{"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ipMode":"VIP"}]}}`))
}

// W19, C37: where a watch is not allowed, the status comes with each apply.
func TestStatus_withoutAWatch(t *testing.T) {
	f := statusFixtureOf(newRestricted(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "patch"}}))
	service := parse(t, serviceText)
	require.Eventually(t, func() bool { return clean(f.apply(nil, service)) }, patience, often, "rights arrive late")
	result := f.apply(nil, service)
	id := result.Inventory[0]
	require.True(t, result.Unseen)
	seen, _ := f.Observe(f.owner)
	assert.Equal(t, `{"loadBalancer":{}}`, string(seen.Statuses[id.Key()].JSON))

	f.setStatus("services", "web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`)
	f.requests.take()
	require.True(t, clean(f.apply(result.Inventory, service)))
	assert.Len(t, f.requests.take(), 2, "it costs no request: a look whose it is, and the apply")
	seen, _ = f.Observe(f.owner)
	assert.Equal(t, `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ipMode":"VIP"}]}}`, string(seen.Statuses[id.Key()].JSON))
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
