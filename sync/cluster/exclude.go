package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// longestExclusion is how long the longest exclusion of a cluster is, in times of the first.
const longestExclusion = 15

// exclusion is the time for which a cluster that sent more than is accepted of it is left alone. The
// next one is longer, unless the cluster has behaved for a while.
type exclusion struct {
	until time.Time
	count int
}

// extend excludes the cluster from now on, for a multiple of first, and returns for how long.
func (x *exclusion) extend(first time.Duration) time.Duration {
	longest := longestExclusion * first
	if time.Since(x.until) > longest {
		x.count = 0
	}
	x.count++
	pause := wait.Jitter(backoff(first, longest, x.count), 0.1)
	x.until = time.Now().Add(pause)
	return pause
}

// exceeded has the cluster excluded because of what it sent. It may be called from anywhere.
func (m *member) exceeded(err error) {
	m.mu.Lock()
	if m.excess == nil {
		m.excess = err
	}
	m.mu.Unlock()
	m.ask()
}

// excluded returns how much longer the cluster is excluded, after having excluded it if it sent too
// much. Asking for a probe does not shorten that: something asks all the time.
func (m *member) excluded() time.Duration {
	m.mu.Lock()
	excess := m.excess
	m.excess = nil
	m.mu.Unlock()
	if left := time.Until(m.exclusion.until); excess == nil || left > 0 {
		return max(left, 0)
	}
	pause := m.exclusion.extend(m.registry.options.ExcludeFor)
	m.failures++
	if m.link.intake.kept.isCut() {
		m.drop() // what is kept of it has to go
	}
	m.lost(excess)
	m.registry.options.Log.Info("disconnected from a cluster that sends too much", "cluster", m.key, "reason", describe(excess), "for", pause)
	return pause
}
