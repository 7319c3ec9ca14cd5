package webhooks_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

// watchdog does something over and over, and collects what goes wrong.
type watchdog struct {
	mu     sync.Mutex
	tries  int
	errs   []error
	cancel context.CancelFunc
	done   chan struct{}
}

func watch(ctx context.Context, try func(context.Context) error) *watchdog {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			err := try(ctx)
			if ctx.Err() != nil {
				return
			}
			w.mu.Lock()
			w.tries++
			if err != nil {
				w.errs = append(w.errs, err)
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// assertNone ends it; not one try may have gone wrong.
func (w *watchdog) assertNone(t *testing.T, what string) {
	t.Helper()
	w.cancel()
	<-w.done
	assert.NotZero(t, w.tries, what)
	assert.Empty(t, w.errs, "%s, %d tries", what, w.tries)
}

// writes creates what the webhook looks at, as a dry run.
func writes(c client.Client, namespace string) func(context.Context) error {
	return func(ctx context.Context) error { return c.Create(ctx, newApplication(namespace), client.DryRunAll) }
}

// Two processes side by side, each with an address of its own: when the one that is registered
// ends, the other takes over, and not one request is refused.
func TestServers_handOver(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	first := serve(t, c.RESTConfig(), func(o *webhooks.Options) { o.Registration.Drain = patience })
	first.awaitReady(t)
	second := serve(t, c.RESTConfig(), unregister)
	require.Eventually(t, func() bool {
		err := second.ready(t.Context())
		return err != nil && handshake(t.Context(), second.url, nil) == nil
	},
		patience, 10*time.Millisecond, "it serves, and is not ready: no API server would ask it")

	write := writes(admin, c.Namespace(t))
	require.NoError(t, write(t.Context()), "the first request to a new API server takes long")
	requests := watch(t.Context(), write)
	first.end(t)
	second.awaitReady(t)
	mutating, _ := configurations(t, admin)
	assert.Contains(t, *mutating.Webhooks[0].ClientConfig.URL, second.url)
	requests.assertNone(t, "requests while one process hands over to another")
}

// Two replicas behind one address, as behind a Service: while their certificate authority is
// rotated, and while its Secret is lost, every API server believes every replica, also one that
// learns of the configuration late.
func TestServers_rotateTheirCertificates(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	forgetAuthority(t, admin)
	t.Cleanup(func() { forgetAuthority(t, admin) })
	// A new authority comes after 40 s and signs from 50 s on, the old one ends at 60 s; who read the
	// configuration asks in a twentieth of the time that it takes to settle. A machine that is busy may
	// take the rest.
	const validity, settle, lag = 60 * time.Second, 10 * time.Second, 500 * time.Millisecond
	replicas := startReplicas(t, c, 2, func(o *webhooks.Options) {
		o.Registration.Validity, o.Registration.Settle = validity, settle
	})
	write := writes(admin, c.Namespace(t))
	requests := watch(t.Context(), func(ctx context.Context) error {
		pause(ctx, often) // so that it leaves the processes under test something of the machine
		return write(ctx)
	})
	var believers []*watchdog
	for _, r := range replicas {
		for range 4 { // so that at any moment some have read and not yet asked
			believers = append(believers, watch(t.Context(), believes(admin, r, lag)))
		}
	}

	first := authority(t, admin)
	require.Eventually(t, func() bool { return authority(t, admin) != first }, patience, 50*time.Millisecond, "it is replaced before it ends")
	second := authority(t, admin)
	awaitSigned(t, replicas, second)

	require.NoError(t, admin.Delete(t.Context(), secret()))
	require.Eventually(t, func() bool {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret()), &corev1.Secret{})
		return err == nil && authority(t, admin) != second
	}, patience, 50*time.Millisecond, "it is made again")
	awaitSigned(t, replicas, authority(t, admin))

	requests.assertNone(t, "requests during a rotation")
	for _, b := range believers {
		b.assertNone(t, "handshakes during a rotation")
	}
}

func secret() *corev1.Secret {
	s := &corev1.Secret{}
	s.Namespace, s.Name = v1alpha1.DefaultSystemNamespace, registration.SecretName
	return s
}

// forgetAuthority lets the next server begin anew, with a validity of its own.
func forgetAuthority(t *testing.T, admin client.Client) {
	withdraw(t, admin)
	_ = admin.Delete(afterwards(t), secret())
}

// startReplicas starts servers that are registered by the address of a balancer before them.
func startReplicas(t *testing.T, c *cluster, n int, change func(*webhooks.Options)) []string {
	t.Helper()
	b := balance(t)
	endpoint, err := registration.ParseURL("https://" + b.address)
	require.NoError(t, err)
	var addresses []string
	for range n {
		s := serve(t, c.RESTConfig(), func(o *webhooks.Options) {
			change(o)
			o.Registration.Endpoint, o.Registration.Unregister = endpoint, true
			addresses = append(addresses, o.Registration.Listen)
		})
		defer s.awaitReady(t)
	}
	b.setBackends(addresses)
	return addresses
}

// believes is a handshake as an API server does it that read the configuration a moment ago.
func believes(admin client.Client, address string, lag time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		bundle, err := registered(ctx, admin)
		if err != nil {
			return err
		}
		pause(ctx, lag)
		return handshake(ctx, "https://"+address, bundle)
	}
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// awaitSigned returns when every replica signs with the authority, and with it alone.
func awaitSigned(t *testing.T, replicas []string, authority string) {
	t.Helper()
	for _, r := range replicas {
		require.Eventually(t, func() bool { return handshake(t.Context(), "https://"+r, []byte(authority)) == nil },
			patience, 50*time.Millisecond, "replica %s signs with the new authority", r)
	}
}

// handshake dials the server; without a bundle it trusts any server.
func handshake(ctx context.Context, address string, bundle []byte) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	config := &tls.Config{ServerName: "127.0.0.1", InsecureSkipVerify: bundle == nil} //nolint:gosec // asks only whether it serves
	if bundle != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(bundle)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	return conn.Close()
}

// registered is the bundle that API servers are configured to trust.
func registered(ctx context.Context, admin client.Client) ([]byte, error) {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := admin.Get(ctx, client.ObjectKey{Name: registration.ConfigurationName}, validating); err != nil {
		return nil, err
	}
	return validating.Webhooks[0].ClientConfig.CABundle, nil
}

// balancer forwards connections to its backends in turn.
type balancer struct {
	address  string
	mu       sync.Mutex
	backends []string
	next     int
}

func balance(t *testing.T) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(conn)
		}
	}()
	return b
}

func (b *balancer) forward(conn net.Conn) {
	defer conn.Close()
	b.mu.Lock()
	if len(b.backends) == 0 {
		b.mu.Unlock()
		return
	}
	backend := b.backends[b.next%len(b.backends)]
	b.next++
	b.mu.Unlock()
	upstream, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() { _, _ = io.Copy(upstream, conn); _ = upstream.Close() }()
	_, _ = io.Copy(conn, upstream)
}

func (b *balancer) setBackends(addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = addresses
}
