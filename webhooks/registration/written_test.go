package registration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// enforced is what the admission enforcer of AKS adds to the selectors of every configuration.
var enforced = metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}

// C51: a configuration that another field manager completes after each write is corrected ever more slowly,
// and what is to be registered anew is written at once.
func TestRegister_whereSomebodyElseCompletesIt(t *testing.T) {
	for name, update := range map[string]func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error{
		"after it was written": func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := c.Update(ctx, obj, opts...); err != nil {
				return err
			}
			completed := obj.DeepCopyObject().(client.Object)
			enforce(completed)
			return c.Update(ctx, completed, client.FieldOwner("enforcer"))
		},
		"while it is written": func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			enforce(obj)
			return c.Update(ctx, obj, append(opts, client.FieldOwner("enforcer"))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			writes, logged := 0, []string{}
			c := withConfigurations(t, func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				writes++
				return update(ctx, c, obj, opts...)
			})
			r := &Registrar{client: c, live: c, options: Options{
				Endpoint: ServiceEndpoint("waybill-system", "waybill-webhook"),
				Hooks:    Hooks{Mutating: []Hook{{Resource: "as", Path: "/default/as"}}, Validating: []Hook{{Resource: "as", Path: "/validate/as"}}},
			}}
			r.options.setDefaults()
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
			now, bundle := start, []byte("x")
			register := func(times int, pause time.Duration) {
				for range times {
					require.NoError(t, r.observe(ctx))
					require.NoError(t, r.register(ctx, now, bundle))
					now = now.Add(pause)
				}
			}
			register(100, 0)
			assert.Equal(t, 4, writes, "each is written, and corrected once")
			register(64, time.Second)
			assert.Equal(t, 16, writes, "each again after 1, 3, 7, 15, 31 and 63 seconds")
			assert.True(t, slices.ContainsFunc(logged, func(line string) bool { return strings.Contains(line, `"lastWrittenBy"="enforcer"`) }), "%v", logged)

			bundle = []byte("y")
			register(1, 0)
			assert.Equal(t, 18, writes, "a new authority cannot wait")
		})
	}
}

// withConfigurations returns a client of a cluster with the configurations as a chart makes them.
func withConfigurations(t *testing.T, update func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, admissionregistrationv1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithObjects(
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
		).
		WithInterceptorFuncs(interceptor.Funcs{Update: update}).Build()
}

// enforce completes the selectors of a configuration.
func enforce(configuration client.Object) {
	complete := func(selector *metav1.LabelSelector) {
		selector.MatchExpressions = append(selector.MatchExpressions, enforced)
	}
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			complete(c.Webhooks[i].NamespaceSelector)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			complete(c.Webhooks[i].NamespaceSelector)
		}
	}
}

// A dispute grows while it lasts, and is forgotten after a while.
func TestWritten_note(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		after  []time.Duration // of the corrections, since what is wanted was written first
		pause  time.Duration
	}{
		"none":    {"the first correction comes at once", nil, 0},
		"one":     {"it may be chance", []time.Duration{0}, time.Second},
		"several": {"it is none", []time.Duration{0, time.Second, 3 * time.Second}, 4 * time.Second},
		"many":    {"up to a minute", []time.Duration{0, 1e9, 3e9, 7e9, 15e9, 31e9, 63e9, 123e9}, time.Minute},
		"seldom":  {"what happens every few minutes is no dispute", []time.Duration{0, 2 * time.Minute, 4 * time.Minute}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w, last := written{}, start
			assert.False(t, w.holds([]string{"a"}))
			w.note(start, []string{"a"})
			for _, after := range tc.after {
				last = start.Add(after)
				w.note(last, []string{"a"})
			}
			assert.True(t, w.holds([]string{"a"}))
			assert.Equal(t, tc.pause, w.due.Sub(last), tc.reason)
			w.note(last, []string{"b"})
			assert.Equal(t, last, w.due, "something else is wanted")
		})
	}
}
