package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Options of a registry. The zero value selects the defaults.
type Options struct {
	// UserAgent is sent with every request. Default: waybill.
	UserAgent string
	// Log receives errors that occur in the background. Default: nothing is logged.
	Log logr.Logger

	// ProbeInterval is the time between probes of a cluster that gets no other requests, plus up to
	// a tenth at random. Default: 30 s.
	ProbeInterval time.Duration
	// ProbeTimeout bounds one probe. Default: 5 s.
	ProbeTimeout time.Duration
	// Patience is how long a request may go unanswered before the cluster is probed. Default: 2 s.
	Patience time.Duration
	// RetryAfter is the delay before a lost cluster is probed for the first time; it doubles up to
	// ProbeInterval. Default: 1 s.
	RetryAfter time.Duration
	// ExcludeFor is how long a cluster that sent more than is accepted of it is left alone; each time
	// twice as long, up to 15 times. Default: 1 min.
	ExcludeFor time.Duration

	// limits are what a cluster may send. Default: defaultLimits. Tests make do with less.
	limits limits
	// underWay is what is received from all clusters, and kept what is kept of them. Default of the latter: half
	// of the memory that the process may take, and no less than one cluster may. Tests make do with less.
	underWay, kept *pool
}

func (o *Options) setDefaults() {
	for value, fallback := range map[*time.Duration]time.Duration{
		&o.ProbeInterval: 30 * time.Second,
		&o.ProbeTimeout:  5 * time.Second,
		&o.Patience:      2 * time.Second,
		&o.RetryAfter:    time.Second,
		&o.ExcludeFor:    time.Minute,
	} {
		if *value == 0 {
			*value = fallback
		}
	}
	if o.limits == (limits{}) {
		o.limits = defaultLimits()
	}
	o.underWay = newUnderWay()
	if o.kept == nil {
		o.kept = newKept(max(debug.SetMemoryLimit(-1)/2, o.limits.kept+o.limits.discoveryWeight))
	}
	if o.UserAgent == "" {
		o.UserAgent = "waybill"
	}
}

// State is what the registry knows about a cluster.
type State struct {
	// Engaged is true if Get returns the cluster while it is reachable.
	Engaged bool
	// Contacted is true once the API server has answered, or failed to answer, for the first time.
	Contacted bool
	// Reachable is true while the API server answers.
	Reachable bool
	// LastSeen is when it last answered; zero if never.
	LastSeen time.Time
	// Version of the API server, e.g. v1.36.3; empty before first contact.
	Version string
	// UID of namespace kube-system as the API server reports it; empty before first contact. If Err
	// matches ErrRefused, it may be that of another cluster.
	UID string
	// Err is why the cluster is not engaged, is not reachable, or refuses us; nil if all is well.
	Err error
	// Yields is why the functions of OnEngage are not called for it; nil if they are.
	Yields error
}

// EngageFunc is called when a cluster is engaged. ctx ends when it is disengaged.
type EngageFunc func(ctx context.Context, c *Cluster) error

// Registry engages and disengages clusters. It is safe for concurrent use; no method waits for a
// cluster.
type Registry struct {
	local   *Cluster
	options Options

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	members   map[types.NamespacedName]*member
	withheld  map[types.NamespacedName]error           // why Withhold was called, for those without a member
	ending    map[types.NamespacedName]<-chan struct{} // the field ended of the last member that was started
	hooks     []EngageFunc
	listeners []func(types.NamespacedName, bool)
	guard     func(types.NamespacedName, string) error

	admission sync.Mutex // one decision of guard at a time
}

// NewRegistry returns an empty registry. local is the cluster that the registry's objects live in.
// Everything that the registry starts ends with Start's context, or with Close.
func NewRegistry(local *Cluster, o Options) *Registry {
	o.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Registry{
		local: local, options: o, ctx: ctx, cancel: cancel,
		members: map[types.NamespacedName]*member{}, withheld: map[types.NamespacedName]error{},
		ending: map[types.NamespacedName]<-chan struct{}{},
	}
}

// Start closes the registry when ctx ends. It makes the registry a Runnable of a manager.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.Close()
	return nil
}

// Close disengages every cluster and returns when all goroutines have ended.
func (r *Registry) Close() {
	r.mu.Lock()
	r.cancel() // under the lock, so that Ensure starts nothing after it
	r.mu.Unlock()
	r.work.Wait()
}

// Local returns the cluster that the registry's objects live in. It is always engaged and never
// probed: if it does not answer, nothing can be done anyway.
func (r *Registry) Local() *Cluster { return r.local }

// Get returns an engaged cluster that answers. Otherwise the error is ErrUnreachable, or
// ErrNotEngaged for a cluster that is not known, not contacted yet, withheld or kept out.
func (r *Registry) Get(key types.NamespacedName) (*Cluster, error) {
	m, withheld := r.find(key)
	switch {
	case m != nil:
		return m.get()
	case withheld != nil:
		return nil, &WithheldError{Cluster: key, Err: withheld}
	default:
		return nil, fmt.Errorf("cluster %s is %w: no KubernetesCluster that this process serves has that name", key, ErrNotEngaged)
	}
}

// State returns what is known about a cluster, and whether Ensure was called for it.
func (r *Registry) State(key types.NamespacedName) (State, bool) {
	m := r.member(key)
	if m == nil {
		return State{}, false
	}
	return m.snapshot(), true
}

// Ensure engages a cluster under that name in the background, as soon as it answers. hash
// identifies the kubeconfig: if it is unchanged, Ensure does nothing. If it has changed in nothing
// but credentials, of one user of one cluster, and the old ones still work, the engagement goes on
// with the new ones. Otherwise the old engagement ends and a new one begins, and the functions of
// OnEngage are called once all holds on the old one are released. A nil config means the local
// cluster.
func (r *Registry) Ensure(key types.NamespacedName, hash string, config *rest.Config) {
	if err := r.ensure(key, hash, config); err != nil {
		r.notify(key, false) // no member does: the cluster will not be contacted
	}
}

// ensure returns an error if the config is new and cannot be used.
func (r *Registry) ensure(key types.NamespacedName, hash string, config *rest.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.members[key]
	if r.ctx.Err() != nil || (old != nil && (old.hash == hash || old.offer(hash, config))) {
		return nil
	}
	delete(r.withheld, key)
	return r.begin(key, hash, config)
}

// supersede has another member take the place of one that cannot go on with what it was offered. It
// reports false if the offer is of no account any more.
func (r *Registry) supersede(m *member, by *offer) bool {
	superseded, err := r.supersedeBy(m, by)
	if err != nil {
		r.notify(m.key, false)
	}
	return superseded
}

func (r *Registry) supersedeBy(m *member, by *offer) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil || r.members[m.key] != m || m.hash != by.hash {
		return false, nil
	}
	return true, r.begin(m.key, by.hash, by.config)
}

// begin starts a member in the place of the one that has the name, if there is one. The caller holds
// the lock.
func (r *Registry) begin(key types.NamespacedName, hash string, config *rest.Config) error {
	if old := r.members[key]; old != nil {
		old.cancel()
	}
	m := newMember(r, key, hash)
	r.members[key] = m
	if config != nil {
		if err := m.prepare(config); err != nil {
			m.cancel()
			m.state.Err = err
			return err
		}
	}
	m.before = r.ending[key]
	if m.before == nil {
		m.before = nobody
	}
	r.ending[key] = m.ended
	r.work.Go(m.run)
	return nil
}

// own returns a config for requests of this registry.
func (r *Registry) own(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = r.options.UserAgent
	return config
}

// nobody is the field ended where no member had the name before.
var nobody = func() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}()

// left notes that a member, and those that had its name before, have ended.
func (r *Registry) left(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending[m.key] == m.ended {
		delete(r.ending, m.key)
	}
	close(m.ended)
}

// Remove disengages a cluster and forgets it.
func (r *Registry) Remove(key types.NamespacedName) {
	if r.forget(key, nil) {
		r.notify(key, false)
	}
}

// Withhold disengages a cluster, as Remove does. Until the next Ensure or Remove, Get says why, so the
// text of the error must be stable.
func (r *Registry) Withhold(key types.NamespacedName, why error) {
	if r.forget(key, why) {
		r.notify(key, false)
	}
}

// forget reports whether Get says something else from now on. A nil error withholds nothing.
func (r *Registry) forget(key types.NamespacedName, withheld error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.withheld[key]
	if delete(r.withheld, key); withheld != nil {
		r.withheld[key] = withheld
	}
	m := r.members[key]
	if m == nil {
		return text(before) != text(withheld)
	}
	m.cancel()
	delete(r.members, key)
	return true
}

// Probe probes a cluster now, and calls Guard again, without waiting for it.
func (r *Registry) Probe(key types.NamespacedName) {
	if m := r.member(key); m != nil {
		m.ask()
	}
}

// Guard sets a function that decides whether a cluster is engaged, and whether the functions of
// OnEngage are called for it. f is called with the UID that the cluster reports before it is engaged,
// and at every probe after that. If it returns an error that matches ErrRefused, the cluster is not
// engaged, or not any more. If it returns another error, the functions of OnEngage are not called;
// the cluster can be used all the same. If they were called already, the cluster is disengaged and
// engaged again without them. f is called for one cluster at a time, and must not block. Guard must
// be called before the first Ensure.
func (r *Registry) Guard(f func(key types.NamespacedName, uid string) error) { r.guard = f }

// OnEngage adds a function that is called for every cluster that Guard allows: at first contact,
// and again after the cluster was disengaged in between. Functions are called in the order in which
// they were added, in a goroutine of the cluster. They should return soon, and start goroutines
// that end with ctx for anything that lasts. A function that fails is called again, with a back-off
// from one second to five minutes, and at once when a lost cluster is back; the others do not wait
// for it. OnEngage must be called before the first Ensure.
func (r *Registry) OnEngage(f EngageFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = append(r.hooks, f)
}

// Subscribe adds a function that is called when a cluster is engaged or disengaged, lost or back,
// or when the reason why it is not usable changes; reachable says whether Get would return it. f is
// called in a goroutine of the cluster or by Ensure or Remove, and must not block. Subscribe must be
// called before the first Ensure.
func (r *Registry) Subscribe(f func(key types.NamespacedName, reachable bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, f)
}

func (r *Registry) member(key types.NamespacedName) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members[key]
}

// find returns the member of a name, or else why the cluster is withheld.
func (r *Registry) find(key types.NamespacedName) (*member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members[key], r.withheld[key]
}

func (r *Registry) notify(key types.NamespacedName, reachable bool) {
	r.mu.Lock()
	listeners := r.listeners
	r.mu.Unlock()
	for _, f := range listeners {
		f(key, reachable)
	}
}

// admit asks the guard whether a cluster may be engaged, and whether the functions of OnEngage may be
// called for it.
func (r *Registry) admit(key types.NamespacedName, uid string) (yields, refused error) {
	if r.guard == nil {
		return nil, nil
	}
	r.admission.Lock()
	defer r.admission.Unlock()
	err := r.guard(key, uid)
	if errors.Is(err, ErrRefused) {
		return nil, err
	}
	return err, nil
}

var errConnecting = errors.New("connecting for the first time")
