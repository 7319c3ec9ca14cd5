package registration

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elect campaigns for the Lease until the context ends, or endLease releases the Lease. A process
// that loses the Lease, because its API server was slow, campaigns again and goes on answering.
func (r *Registrar) elect(ctx context.Context, log logr.Logger) error {
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get host name: %w", err)
	}
	identity := hostname + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, r.options.Namespace, LeaseName,
		r.clientset.CoreV1(), r.clientset.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return fmt.Errorf("make lease lock: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            LeaseName,
		Lock:            &chartLease{Interface: lock, log: log, yields: r.addsHooks, yielding: r.options.LeaseDuration},
		LeaseDuration:   r.options.LeaseDuration,
		RenewDeadline:   r.options.RenewDeadline,
		RetryPeriod:     r.options.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				log.Info("holds the lease", "identity", identity)
				r.leading.Store(true)
				if ctx.Err() != nil { // the Lease may be lost before this runs
					r.leading.Store(false)
				}
				r.request()
			},
			OnStoppedLeading: func() { r.leading.Store(false) },
		},
	})
	if err != nil {
		return fmt.Errorf("stand for lease: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	}()
	endLease := func() { cancel(); <-done }
	r.endLease.Store(&endLease)
	return nil
}

// addsHooks reports whether this process would register paths that are not registered yet: an older
// version leads, or led, and where it is still being replaced, no process answers there.
func (r *Registrar) addsHooks() bool {
	s, _ := r.current()
	return s.mentions(r.options.Endpoint, r.options.Hooks) && !s.names(r.options.Endpoint, r.options.Hooks)
}

// chartLease is the lock of a Lease that a chart has made. Where that was deleted, it has to be
// created, which is not allowed: no process leads then. Why is logged once.
type chartLease struct {
	resourcelock.Interface
	log    logr.Logger
	failed bool

	// yields reports whether other processes have precedence, and yielding is for how long: see Get.
	yields   func() bool
	yielding time.Duration
}

// Get implements resourcelock.Interface. A Lease that was released looks as if it were held for a while
// yet, to a process that yields: one that does not yield acquires it meanwhile. So in an upgrade, hooks
// at new paths are registered when the last process that does not answer there has ended.
func (l *chartLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity == "" && l.yields() {
		record.HolderIdentity, record.LeaseDurationSeconds = "another process", int(l.yielding/time.Second)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *chartLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err != nil && !apierrors.IsAlreadyExists(err) && !l.failed {
		l.log.Error(madeByChart(err), "cannot maintain the webhook configurations", "lease", l.Describe())
	}
	l.failed = err != nil
	return err
}
