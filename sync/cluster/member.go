package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/reconcile/turns"
)

const (
	// versionEvery is the time after which the version is read again, in intervals between probes.
	versionEvery = 20
	// notReadyLimit is how many answers of "not ready" in a row are tolerated; with one more, the
	// server counts as lost. A server that is being restarted behind a load balancer gives one or
	// two such answers.
	notReadyLimit = 2
	// probeApart is the minimum time between two probes that are triggered by failing requests.
	probeApart = 200 * time.Millisecond
	// settleTime bounds how long the connections of a cluster that was disengaged are kept for work that
	// holds them: its context is canceled, and it needs them to record its result.
	settleTime = 15 * time.Second
)

// member is one name in the registry and the goroutine that manages it: it probes, engages and
// disengages. All changes of state happen in that goroutine.
type member struct {
	registry *Registry
	key      types.NamespacedName
	hash     string // of the kubeconfig that came last; the registry's lock guards it
	ctx      context.Context
	cancel   context.CancelFunc
	link     *link           // nil for the local cluster
	holds    *turns.Group    // what needs the connections of link to the end
	before   <-chan struct{} // closed once the members that had the name before have ended
	ended    chan struct{}   // closed once this one has, too
	wake     chan struct{}   // asks for a look; holds one
	urgent   chan struct{}   // asks for a look in spite of the back-off; holds one

	// Used by the goroutine only.
	failures  int       // probes in a row without an answer
	unready   int       // answers in a row of "not ready"
	lastProbe time.Time // when the last one began
	identity  identity  // of the last contact
	asked     time.Time // when the identity was asked for
	driven    bool      // the functions of OnEngage were called for the engagement
	exclusion exclusion // for having sent too much

	mu        sync.Mutex
	state     State
	cluster   *Cluster // nil while not engaged
	disengage context.CancelFunc
	offered   *offer // other credentials that were not tried yet; nil if there are none
	excess    error  // that the cluster sent too much, and was not excluded for yet; nil if it did not
	past      error  // that the cluster went back in time since it was engaged; nil if it did not
	engagedAt time.Time
}

func newMember(r *Registry, key types.NamespacedName, hash string) *member {
	ctx, cancel := context.WithCancel(r.ctx)
	return &member{
		registry: r, key: key, hash: hash, ctx: ctx, cancel: cancel, holds: turns.NewGroup(), ended: make(chan struct{}),
		wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		state: State{Err: errConnecting},
	}
}

// prepare builds the link of a cluster that is not the local one.
func (m *member) prepare(config *rest.Config) error {
	built, err := newLink(m.registry.own(config), m.registry.options, m.suspect, m.exceeded)
	m.link = built
	return err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// suspect asks for a probe because a request failed. It has no effect while the cluster is lost,
// because probes are then scheduled anyway.
func (m *member) suspect() { signal(m.wake) }

// ask asks for a probe now.
func (m *member) ask() { signal(m.urgent) }

// run manages the member until it is cancelled.
func (m *member) run() {
	defer m.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		asked := true
		select {
		case <-m.ctx.Done():
			return
		case <-timer.C:
			asked = false
		case <-m.urgent:
		case <-m.wake:
			if m.failures > 0 {
				continue
			}
			if early := probeApart - time.Since(m.lastProbe); early > 0 {
				timer.Reset(early)
				m.lastProbe = time.Time{} // the timer then does what was asked
				continue
			}
		}
		timer.Reset(m.look(asked))
	}
}

// look probes the cluster and returns the time until the next probe.
func (m *member) look(asked bool) time.Duration {
	o := m.registry.options
	if m.link == nil {
		local := m.registry.local
		m.answered(identity{version: local.version, uid: local.uid}, nil)
		return o.ProbeInterval
	}
	if pause := m.excluded(); pause > 0 {
		return pause
	}
	quiet := time.Since(m.link.breaker.lastAnswer())
	if !asked && !m.mustIdentify() && !m.lastProbe.IsZero() && quiet < o.ProbeInterval {
		return wait.Jitter(o.ProbeInterval-quiet, 0.1)
	}
	m.exchange()
	m.lastProbe = time.Now()
	ctx, cancel := context.WithTimeout(m.ctx, o.ProbeTimeout)
	defer cancel()
	id, err := m.probe(ctx)
	if isCut(err) {
		m.link.base.CloseIdleConnections() // the others may have ended with it
		id, err = m.probe(ctx)
	}
	if notReady(err) && m.engaged() && m.link.renew(ctx) {
		id, err = m.probe(ctx)
	}
	switch {
	case m.ctx.Err() != nil:
		return o.ProbeInterval // the member has ended
	case err == nil:
		m.failures, m.unready = 0, 0
		m.answered(id, nil)
	case notReady(err) && m.engaged() && m.unready < notReadyLimit:
		m.unready++
		return o.RetryAfter
	case isAnswer(err) && !notReady(err):
		m.unready = 0
		m.answered(id, err)
	default:
		m.lost(err)
	}
	if err == nil {
		return wait.Jitter(o.ProbeInterval, 0.1)
	}
	m.failures++
	return wait.Jitter(backoff(o.RetryAfter, o.ProbeInterval, m.failures), 0.1)
}

// probe checks readiness, and reads the identity if it is not known or may have changed.
func (m *member) probe(ctx context.Context) (identity, error) {
	if err := m.link.ready(ctx); err != nil && !mayNotAsk(err) {
		return m.identity, err
	}
	if !m.mustIdentify() {
		return m.identity, nil
	}
	id, err := m.link.identify(ctx)
	if err != nil {
		return m.identity, err
	}
	m.asked = time.Now()
	return id, nil
}

// mustIdentify reports whether the identity is not known or may have changed. A cluster that never
// falls silent is upgraded, too.
func (m *member) mustIdentify() bool {
	return !m.engaged() || m.failures > 0 || m.isPast() || time.Since(m.asked) >= versionEvery*m.registry.options.ProbeInterval
}

// mayNotAsk reports whether err only means that our user may not read the readiness.
func mayNotAsk(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.code == http.StatusForbidden || status.code == http.StatusNotFound)
}

// isAnswer reports whether err is an answer of the API server.
func isAnswer(err error) bool {
	var status *statusError
	return errors.As(err, &status)
}

func backoff(first, limit time.Duration, failures int) time.Duration {
	d := first
	for i := 1; i < failures && d < limit; i++ {
		d *= 2
	}
	return min(d, limit)
}

// lost records that the API server does not answer, and makes requests fail at once.
func (m *member) lost(err error) {
	unreachable := &UnreachableError{Cluster: m.key, Reason: describe(err), LastSeen: m.link.breaker.lastAnswer()}
	errors.As(err, &unreachable.Limit)
	m.link.cut(unreachable)
	m.change(func(s *State) {
		s.Contacted, s.Reachable, s.LastSeen, s.Err = true, false, unreachable.LastSeen, unreachable
	})
}

// answered records that the API server answers. If it refuses us, refused is the error; otherwise
// the cluster is engaged if the guard lets it, and engaged again if it turns out to be a different
// cluster by now.
func (m *member) answered(id identity, refused error) {
	if m.link != nil {
		m.link.breaker.reset()
	}
	yields := m.snapshot().Yields
	if refused == nil {
		if id.uid != m.identity.uid {
			m.drop()
		}
		m.renew()
		m.identity = id
		if yields, refused = m.registry.admit(m.key, id.uid); refused != nil {
			m.drop()
		} else {
			refused = m.keepEngaged(yields == nil)
		}
	}
	m.change(func(s *State) {
		s.Contacted, s.Reachable, s.Err, s.Yields = true, true, refused, yields
		s.Version, s.UID, s.Engaged = m.identity.version, m.identity.uid, m.cluster != nil
		switch {
		case m.link != nil:
			s.LastSeen = m.link.breaker.lastAnswer()
		case s.LastSeen.IsZero():
			s.LastSeen = time.Now()
		}
	})
}

// keepEngaged engages the cluster if it is not engaged yet; drive says whether to call the
// functions of OnEngage.
func (m *member) keepEngaged(drive bool) error {
	if m.driven && !drive {
		m.drop() // nothing else stops what they have started
	}
	if !m.engaged() {
		if err := m.engage(); err != nil {
			return err
		}
	}
	if drive && !m.driven {
		m.drive()
	}
	return nil
}

// change changes the state and notifies the listeners if the change matters to them.
func (m *member) change(apply func(*State)) {
	m.mu.Lock()
	before := m.state
	apply(&m.state)
	after := m.state
	m.mu.Unlock()
	if before.Engaged != after.Engaged || before.Contacted != after.Contacted || before.Reachable != after.Reachable ||
		before.Version != after.Version || before.UID != after.UID ||
		text(before.Err) != text(after.Err) || text(before.Yields) != text(after.Yields) {
		m.registry.notify(m.key, after.Engaged && after.Reachable)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// settle waits for the work that holds the connections; no more begins.
func (m *member) settle() {
	m.holds.Close()
	m.holds.Await(settleTime)
}

// end cuts every connection when the member is removed or replaced, once all holds are released.
func (m *member) end() {
	m.drop()
	m.settle()
	if m.link != nil {
		m.link.end(fmt.Errorf("cluster %s is %w any more", m.key, ErrNotEngaged))
	}
	<-m.before
	m.registry.left(m)
}

func (m *member) engaged() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster != nil
}

func (m *member) snapshot() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *member) get() (*Cluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.cluster != nil && m.state.Reachable:
		return m.cluster, nil
	case errors.Is(m.state.Err, ErrUnreachable):
		return nil, m.state.Err
	case m.state.Err == nil: // what it was engaged as has ended
		return nil, fmt.Errorf("cluster %s is %w: it is about to be connected again", m.key, ErrNotEngaged)
	default:
		return nil, fmt.Errorf("cluster %s is %w: %w", m.key, ErrNotEngaged, m.state.Err)
	}
}
