package integration_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// policies returns the NetworkPolicies of a release, by name.
func policies(t *testing.T, values map[string]any) map[string]*networkingv1.NetworkPolicy {
	t.Helper()
	objects, err := renderWaybill(t, values)
	require.NoError(t, err)
	found := map[string]*networkingv1.NetworkPolicy{}
	for _, o := range objects {
		if o.GetKind() == "NetworkPolicy" {
			p := &networkingv1.NetworkPolicy{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, p, true))
			found[p.Name] = p
		}
	}
	return found
}

// letsOut says whether a policy lets out to the TCP port of an address outside of the cluster.
func letsOut(t *testing.T, p *networkingv1.NetworkPolicy, address string, port int32) bool {
	t.Helper()
	if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		return true
	}
	ip := netip.MustParseAddr(address)
	return slices.ContainsFunc(p.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		open := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(o networkingv1.NetworkPolicyPort) bool {
			return *o.Protocol == "TCP" && o.Port.IntVal == port
		})
		return open && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
			return peer.IPBlock != nil && netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(ip) &&
				!slices.ContainsFunc(peer.IPBlock.Except, func(not string) bool { return netip.MustParsePrefix(not).Contains(ip) })
		}))
	})
}

// By default nothing that Waybill asks for is kept from it, but the metadata services of clouds, which
// hand out the credentials of the node.
func TestChart_keepsFromMetadataServices(t *testing.T) {
	for _, values := range []map[string]any{nil, nested("sync.perRole", true),
		{"dashboard": map[string]any{"enabled": true, "url": "https://waybill.example.com", "proxy": map[string]any{"caConfigMap": "ca"}}}} {
		all := policies(t, values)
		objects, err := renderWaybill(t, values)
		require.NoError(t, err)
		assert.Len(t, all, len(names(objects, "Deployment")), "each program has one")
		for name, p := range all {
			for address, ports := range map[string][]int32{
				"10.96.0.1": {443}, "192.168.1.10": {6443, 12345}, "203.0.113.7": {22, 80, 443, 5000}, "2001:db8::7": {22, 80, 443},
				"169.254.20.10": {53}, "fd12::1": {443, 6443},
			} {
				for _, port := range ports {
					assert.True(t, letsOut(t, p, address, port), "%s: %s port %d", name, address, port)
				}
			}
			for _, address := range []string{"169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fe80::1"} {
				assert.False(t, letsOut(t, p, address, 80), "%s: %s", name, address)
			}
			require.NotNil(t, p.Spec.Egress[1].To[0].NamespaceSelector, "%s: Pods are let out to, whatever their address", name)
		}
	}
}

// Who needs more says so, and who has policies of their own switches ours off.
func TestChart_egressCanBeChanged(t *testing.T) {
	extra := []any{map[string]any{"to": []any{map[string]any{"ipBlock": map[string]any{"cidr": "169.254.170.23/32"}}}, "ports": []any{map[string]any{"protocol": "TCP", "port": 80}}}}
	for reason, tc := range map[string]struct {
		values      map[string]any
		metadata    bool
		containers  bool
		alternative bool
	}{
		"by default":            {nil, false, false, true},
		"what is needed":        {nested("networkPolicy.egress.extra", extra), false, true, true},
		"addresses of your own": {nested("networkPolicy.egress.except", []any{"203.0.113.0/24"}), true, true, false},
		"all":                   {nested("networkPolicy.egress.enabled", false), true, true, true},
	} {
		for name, p := range policies(t, tc.values) {
			assert.Equal(t, tc.metadata, letsOut(t, p, "169.254.169.254", 80), "%s: %s", reason, name)
			assert.Equal(t, tc.containers, letsOut(t, p, "169.254.170.23", 80), "%s: %s", reason, name)
			assert.Equal(t, tc.alternative, letsOut(t, p, "203.0.113.7", 80), "%s: %s", reason, name)
		}
	}
	assert.Empty(t, policies(t, nested("networkPolicy.enabled", false)))
}
