package cluster

import (
	"context"

	"k8s.io/client-go/rest"
)

// offer is a kubeconfig that differs from the one of a member in nothing but its credentials. To exchange these
// takes four requests, whatever is in the cluster. To engage it again takes discovery and a list of every kind
// that any controller watches there, and compares every delivered object: for tokens that are renewed each hour,
// each hour in each cluster.
type offer struct {
	hash    string
	config  *rest.Config
	channel *channel
}

// offer has the member try other credentials, for an engagement that goes on with them if they are
// those of the same user. It reports whether they can be tried: a cluster that is lost, or refused
// already, may be waiting for another attempt, and is better engaged again. The caller holds the
// registry's lock.
func (m *member) offer(hash string, config *rest.Config) bool {
	if config == nil || m.link == nil {
		return false
	}
	channel := m.link.channel(m.registry.own(config))
	if channel == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cluster == nil || m.state.Err != nil {
		return false
	}
	m.hash, m.offered = hash, &offer{hash: hash, config: config, channel: channel}
	m.ask()
	return true
}

// exchange tries the credentials that are offered, if there are any. Where they cannot take the place
// of the present ones, another member takes the place of this one.
func (m *member) exchange() {
	m.mu.Lock()
	offered := m.offered
	m.offered = nil
	m.mu.Unlock()
	if offered == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, m.registry.options.ProbeTimeout)
	defer cancel()
	err := m.link.exchange(ctx, offered.channel, m.identity.uid)
	if err != nil && m.registry.supersede(m, offered) {
		m.registry.options.Log.Info("reconnected: the new credentials cannot replace the old ones in place",
			"cluster", m.key, "reason", describe(err))
	}
}
