package registration

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"waybill.dev/waybill/webhooks/certificate"
)

// The wait before a failed step is retried; it doubles from the one to the other.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=waybill,verbs=get;list;watch;update
// +kubebuilder:rbac:groups="",resources=secrets,namespace=waybill-system,resourceNames=waybill-webhook-ca,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=waybill-system,resourceNames=waybill-webhook,verbs=get;update

// Registrar keeps the serving certificate of a process and, while it holds the Lease, the
// webhook configurations of the cluster.
type Registrar struct {
	options   Options
	client    client.Client // reads from the cache
	live      client.Reader
	cache     cache.Cache
	clientset kubernetes.Interface

	// wake holds at most one request for a step.
	wake chan struct{}

	leading  atomic.Bool
	draining atomic.Bool

	// endLease releases the Lease and returns when that is done; nil before the election.
	endLease atomic.Pointer[func()]

	// These belong to the loop alone.
	trust                trust
	kept                 certificate.Keyring                  // the last one that was shared
	retired              map[*certificate.Authority]time.Time // still trusted until then
	mutating, validating written

	observed atomic.Pointer[observation]
}

// CacheObjects returns what the cache of the manager must be restricted to: our own Secret and our
// own configurations, the only ones that RBAC allows.
func CacheObjects(namespace string) map[client.Object]cache.ByObject {
	ours := fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigurationName)
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, SecretName)},
		}},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: ours},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: ours},
	}
}

// Setup adds a Registrar to a manager whose cache is restricted by CacheObjects.
func Setup(mgr manager.Manager, o Options) (*Registrar, error) {
	o.setDefaults()
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	r := &Registrar{
		options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), clientset: clientset,
		wake:    make(chan struct{}, 1),
		retired: map[*certificate.Authority]time.Time{},
	}
	r.saw(state{})
	if err := mgr.Add(r); err != nil {
		return nil, fmt.Errorf("add registrar: %w", err)
	}
	return r, nil
}

// NeedLeaderElection returns false: every process keeps a certificate. The registrar has its own
// Lease for the configurations.
func (*Registrar) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (r *Registrar) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("registration")
	if err := r.watch(ctx); err != nil {
		return err
	}
	if err := r.observe(ctx); err != nil { // the election depends on it
		return err
	}
	if err := r.elect(ctx, log); err != nil {
		return err
	}
	r.loop(ctrl.LoggerInto(ctx, log), log)
	return nil
}

// watch triggers the loop whenever something that it reads changes.
func (r *Registrar) watch(ctx context.Context) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { r.request() },
		UpdateFunc: func(any, any) { r.request() },
		DeleteFunc: func(any) { r.request() },
	}
	for obj := range CacheObjects(r.options.Namespace) {
		informer, err := r.cache.GetInformer(ctx, obj)
		if err != nil {
			return fmt.Errorf("watch %T: %w", obj, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", obj, err)
		}
	}
	return nil
}

// Wake requests a check of what is to be registered; it does not block.
func (r *Registrar) Wake() { r.request() }

// request asks the loop for a step; requests that are still pending are merged into one.
func (r *Registrar) request() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Registrar) loop(ctx context.Context, log logr.Logger) {
	retry := firstRetry
	for {
		next, err := r.step(ctx)
		switch {
		case err == nil:
			retry = firstRetry
		case ctx.Err() != nil:
			return
		default:
			next, retry = retry, min(2*retry, lastRetry)
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another process was faster
				log.Error(err, "registration is not as it should be", "retryAfter", next.String())
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// step does whatever is due in this process, and returns how long the result holds if nothing
// changes.
func (r *Registrar) step(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	if err := r.observe(ctx); err != nil { // first, as readiness depends on it
		return 0, err
	}
	keyring, keyringErr := r.keyring(ctx, now)
	if keyring.Current == nil {
		return 0, keyringErr
	}
	registered, _ := r.current()
	r.trust.see(now, keyring.Current, registered)
	if r.leading.Load() && !r.draining.Load() {
		if err := r.register(ctx, now, keyring.Bundle(now, r.further(now)...)); err != nil {
			return 0, err
		}
	}
	if err := r.serve(now, keyring); err != nil {
		return 0, err
	}
	return r.untilNext(now, keyring), keyringErr
}

// untilNext returns the time until the next certificate is due, a trusted authority settles, or a
// change by another client is corrected.
func (r *Registrar) untilNext(now time.Time, keyring certificate.Keyring) time.Duration {
	next := keyring.RotateAt()
	consider := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	consider(r.options.Holder.Get().RenewAt)
	consider(r.trust.settles(keyring.Current, r.options.Settle))
	consider(r.mutating.due)
	consider(r.validating.due)
	for _, until := range r.retired {
		consider(until)
	}
	return max(next.Sub(now), 0)
}
