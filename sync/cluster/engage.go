package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// hookBackoff returns the back-off for functions of OnEngage that failed.
func hookBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Minute}
}

// engage builds the cluster and makes it available.
func (m *member) engage() error {
	ctx, cancel := context.WithCancel(m.ctx)
	c, err := m.build(ctx)
	if err != nil {
		cancel()
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cluster, m.disengage, m.driven = c, cancel, false
	m.past, m.engagedAt = nil, time.Now()
	return nil
}

// drive calls the functions of OnEngage for the engagement.
func (m *member) drive() {
	m.mu.Lock()
	c := m.cluster
	m.mu.Unlock()
	m.driven = true
	m.registry.mu.Lock()
	hooks := m.registry.hooks
	m.registry.mu.Unlock()
	m.registry.work.Go(func() {
		select {
		case <-m.before: // the work of the member before must have ended before that of this one begins
			m.callAll(c.Context(), c, hooks)
		case <-c.Context().Done():
		}
	})
}

// drop ends the engagement, if there is one.
func (m *member) drop() {
	m.mu.Lock()
	dropped := m.cluster
	if dropped != nil {
		m.disengage()
	}
	m.cluster, m.disengage, m.driven, m.state.Engaged = nil, nil, false, false
	m.mu.Unlock()
	if dropped != nil && m.link != nil { // the lock is not held: others may be disconnected for what is counted
		dropped.ledger.end()
		m.link.intake.forget(false)
	}
}

// build builds the cluster of one engagement.
func (m *member) build(ctx context.Context) (*Cluster, error) {
	if m.link == nil {
		return m.registry.local.named(ctx, m.key, m.holds), nil
	}
	c := &Cluster{
		name: m.key, uid: m.identity.uid, ctx: ctx, kinds: m.registry.local.kinds,
		lost: m.link.breaker.err, returned: m.link.breaker.returned, holds: m.holds,
		config: m.link.config, views: newViews(), ledger: m.link.intake.ledger(m.rewound),
	}
	httpClient, err := c.open()
	if err != nil {
		return nil, err
	}
	own, err := c.newCache(httpClient)
	if err != nil {
		return nil, err
	}
	c.remember(own)
	m.registry.work.Go(func() {
		if err := own.Start(ctx); err != nil {
			m.registry.options.Log.Error(err, "cache of cluster ended", "cluster", m.key)
		}
	})
	return c, nil
}

// callAll calls the functions of OnEngage in order, until the engagement ends. One that fails is
// retried in the background.
func (m *member) callAll(ctx context.Context, c *Cluster, hooks []EngageFunc) {
	for _, hook := range hooks {
		err := hook(ctx, c)
		if ctx.Err() != nil {
			return // those after it may be called for the next engagement already
		}
		if err != nil {
			m.registry.work.Go(func() { m.callAgain(ctx, c, hook, err) })
		}
	}
}

// callAgain calls a function of OnEngage until it succeeds or the engagement ends. While the
// cluster is lost, it waits for it to come back.
func (m *member) callAgain(ctx context.Context, c *Cluster, hook EngageFunc, err error) {
	backoff := hookBackoff()
	for err != nil {
		m.registry.options.Log.Error(err, "engage cluster, will try again", "cluster", m.key)
		pause := time.NewTimer(backoff.Step())
		returned := c.returned()
		if returned != nil {
			pause.Stop()
		}
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		case <-returned:
		}
		err = hook(ctx, c)
	}
}
