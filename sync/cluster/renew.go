package cluster

import (
	"time"

	"waybill.dev/waybill/sync/reconcile/turns"
)

// rewound has the cluster engaged again because its API server went back in time: what is cached of it
// is of a state that no longer exists. It may be called from anywhere.
func (m *member) rewound(err error) {
	m.mu.Lock()
	m.past = err
	m.mu.Unlock()
	m.ask()
}

// isPast reports whether the engagement is of a state that is no more.
func (m *member) isPast() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.past != nil
}

// renew ends an engagement that is of a state that is no more, once its work has recorded how it ended.
// An API server that goes back all the time has no more than one engagement in each interval between
// probes.
func (m *member) renew() {
	m.mu.Lock()
	past, since := m.past, m.engagedAt
	m.mu.Unlock()
	if past == nil || time.Since(since) < m.registry.options.ProbeInterval {
		return
	}
	m.registry.options.Log.Info("reconnected: everything is read again", "cluster", m.key, "reason", past.Error())
	m.drop()
	m.settle()
	m.holds = turns.NewGroup()
}
