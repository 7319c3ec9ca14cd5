package registration

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withdrawn is how long API servers may still send requests after the configurations are deleted.
const withdrawn = time.Second

// Drain shuts this process down without refusing a single request: it makes the process unready,
// releases the Lease, and returns when API servers call another process, or Options.Drain is over.
// Until the server is stopped after that, it answers as before. If no other process has taken over,
// Options.Unregister deletes the configurations.
func (r *Registrar) Drain(ctx context.Context) error {
	r.draining.Store(true)
	if endLease := r.endLease.Load(); endLease != nil {
		(*endLease)()
	}
	if r.handOver(ctx) || !r.options.Unregister || !r.options.Endpoint.ByURL() {
		return nil
	}
	if err := r.withdraw(ctx); err != nil {
		return err
	}
	pause(ctx, withdrawn)
	return nil
}

// handOver returns true once another process has taken over, and false when Options.Drain is over.
func (r *Registrar) handOver(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.options.Drain)
	defer cancel()
	if !r.options.Endpoint.ByURL() {
		<-ctx.Done() // the Service drops us from its endpoints, but we are not notified
		return false
	}
	for {
		s, changed := r.current()
		if !s.mentions(r.options.Endpoint, r.options.Hooks) {
			pause(ctx, r.options.Settle) // API servers do not all observe a configuration at the same time
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// withdraw deletes the configurations, unless another process has taken over meanwhile: no process is left
// to answer, and that must not block writes. What this process wrote last may not have been observed yet.
func (r *Registrar) withdraw(ctx context.Context) error {
	for {
		s, changed := r.current()
		if !s.mentions(r.options.Endpoint, r.options.Hooks) {
			return nil
		}
		conflict, err := r.delete(ctx, s)
		if err != nil || !conflict {
			return err
		}
		select {
		case <-changed:
		case <-time.After(withdrawn):
			return nil
		}
	}
}

// delete deletes the configurations as they were observed, and reports whether one has changed since.
func (r *Registrar) delete(ctx context.Context, s state) (conflict bool, err error) {
	var configurations []client.Object
	if s.mutating != nil {
		configurations = append(configurations, s.mutating)
	}
	if s.validating != nil {
		configurations = append(configurations, s.validating)
	}
	for _, configuration := range configurations {
		ctrl.LoggerFrom(ctx).Info("delete webhook configuration", "type", fmt.Sprintf("%T", configuration))
		err := r.client.Delete(ctx, configuration, client.Preconditions{ResourceVersion: ptr.To(configuration.GetResourceVersion())})
		switch {
		case apierrors.IsConflict(err):
			conflict = true
		case client.IgnoreNotFound(err) != nil:
			return conflict, fmt.Errorf("delete webhook configuration %s: %w", ConfigurationName, err)
		}
	}
	return conflict, nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
