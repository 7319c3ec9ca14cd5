package webhooks_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/certificate"
	"waybill.dev/waybill/webhooks/registration"
)

// shipments is a hook that only a newer version knows.
var shipments = registration.Hook{
	Resource: "shipments", Path: "/validate/shipments",
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Scope: admissionregistrationv1.NamespacedScope,
}

// C51: a rollout ends no process before the next one is ready. So one that knows a hook more than the
// holder of the Lease is ready while that leads, and registers the hook when it leads itself.
func TestRegistrar_upgradeAddsAHook(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	b := balance(t)
	t.Cleanup(func() { withdraw(t, admin) })
	newer := webhooks.Hooks()
	newer.Validating = append(newer.Validating, shipments)

	first := startRegistrar(t, c, b.address, webhooks.Hooks(), nil)
	first.awaitReady(t)
	second := startRegistrar(t, c, b.address, newer, nil)
	b.setBackends([]string{first.listen, second.listen})
	second.awaitReady(t)
	_, validating := configurations(t, admin)
	assert.Len(t, validating.Webhooks, len(webhooks.Hooks().Validating), "the first one leads")

	first.end(t)
	require.Eventually(t, func() bool {
		_, validating := configurations(t, admin)
		return len(validating.Webhooks) == len(newer.Validating)
	}, patience, often, "the second one leads, and registers what it knows")
	second.awaitReady(t)
}

// C51: a process that does not know a hook refuses what is sent there. So as long as one runs, it leads
// before those that know it, however fast they are.
func TestRegistrar_upgradeAddsAHookInTheEnd(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	b := balance(t)
	t.Cleanup(func() { withdraw(t, admin) })
	older, newer := webhooks.Hooks(), webhooks.Hooks()
	newer.Validating = append(newer.Validating, shipments)
	led := func() (seconds int32) { // by whom, says the duration
		lease := &coordinationv1.Lease{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.DefaultSystemNamespace, Name: registration.LeaseName}, lease))
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			return 0
		}
		return ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	}

	first := startRegistrar(t, c, b.address, older, nil)
	first.awaitReady(t)
	second := startRegistrar(t, c, b.address, newer, func(o *registration.Options) { o.RetryPeriod = 20 * time.Millisecond })
	third := startRegistrar(t, c, b.address, older, func(o *registration.Options) { o.LeaseDuration = 7 * time.Second })
	b.setBackends([]string{second.listen, third.listen})
	second.awaitReady(t)
	third.awaitReady(t)
	first.end(t)
	require.Eventually(t, func() bool { return led() != 0 }, patience, often, "there is a leader")
	assert.EqualValues(t, 7, led(), "the third one, which is of the old version")

	third.end(t)
	require.Eventually(t, func() bool {
		_, validating := configurations(t, admin)
		return len(validating.Webhooks) == len(newer.Validating)
	}, patience, often, "no other replica is left that would refuse it")
	assert.EqualValues(t, 6, led())
}

// registrar is a running Registrar with a server of its own, which answers nothing.
type registrar struct {
	*registration.Registrar
	listen string
	stop   context.CancelFunc
	ended  chan error
}

// startRegistrar registers hooks at an address that leads to the returned process. change may be nil.
func startRegistrar(t *testing.T, c *cluster, address string, hooks registration.Hooks, change func(*registration.Options)) *registrar {
	t.Helper()
	endpoint, err := registration.ParseURL("https://" + address)
	require.NoError(t, err)
	r, holder := &registrar{listen: env.Address(t), ended: make(chan error, 1)}, &certificate.Holder{}
	host, name, err := net.SplitHostPort(r.listen)
	require.NoError(t, err)
	port, err := strconv.Atoi(name)
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(c.RESTConfig(), ctrl.Options{
		Scheme:                 scheme(t),
		Cache:                  cache.Options{ByObject: registration.CacheObjects(v1alpha1.DefaultSystemNamespace)},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		WebhookServer:          webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){holder.Configure}}),
	})
	require.NoError(t, err)
	mgr.GetWebhookServer() // adds it
	options := registration.Options{
		Namespace: v1alpha1.DefaultSystemNamespace, Endpoint: endpoint, Listen: r.listen, Hooks: hooks, Holder: holder, Settle: time.Second,
		LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}
	if change != nil {
		change(&options)
	}
	r.Registrar, err = registration.Setup(mgr, options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.ended <- mgr.Start(ctx) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end returns when the Lease is released and the process has ended.
func (r *registrar) end(t *testing.T) {
	t.Helper()
	if r.stop == nil {
		return
	}
	assert.NoError(t, r.Drain(afterwards(t)))
	r.stop()
	r.stop = nil
	assert.NoError(t, <-r.ended)
}

func (r *registrar) awaitReady(t *testing.T) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { err = r.Ready(req); return err == nil }, patience, often, "the registrar does not become ready")
	require.NoError(t, err)
}
