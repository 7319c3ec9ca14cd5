package gitsync

import (
	"errors"
	"fmt"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// errPaused is the error of a cluster in which spec.paused forbids any work.
var errPaused = errors.New("the KubernetesCluster is paused")

// namedClusters is how many clusters a message names.
const namedClusters = 5

func (t *target) paused() bool { return errors.Is(t.state.Lost, errPaused) }

// isCurrent reports whether a cluster got what is wanted, and nothing that is not: from this process, or,
// as the status said when that began, from an earlier one. A cluster of which that is not known is not.
func (s *scope) isCurrent(t *target) bool {
	switch {
	case t.leaving:
		return false
	case !s.session.desired.source.known():
		return t.achieved.restored == s.gs.Generation
	case t.achieved.delivered != "":
		return t.achieved.delivered == s.session.desired.digest
	default:
		return t.achieved.restored == s.gs.Generation && t.achieved.revision == s.session.desired.source.revision.String()
	}
}

// pausedClusters returns the names of the clusters that are paused, and of those among them that do not
// have what is wanted.
func (s *scope) pausedClusters() (paused, behind []string) {
	for _, t := range s.targets() {
		if !t.paused() {
			continue
		}
		if paused = append(paused, t.name); !s.isCurrent(t) {
			behind = append(behind, t.name)
		}
	}
	return paused, behind
}

// reportPaused reports, in place of success, that paused clusters do not have what is wanted: Ready says
// what is there, and nothing fails. The revision stays as it is.
func (s *scope) reportPaused(outcome reconcile.Outcome, behind []string) reconcile.Outcome {
	all := len(s.session.targets)
	done := fmt.Sprintf("%s is applied nowhere", s.session.desired.source.revision)
	if n := all - len(behind); n > 0 {
		done = fmt.Sprintf("applied %s: %s in %s", s.session.desired.source.revision, excerpt.Count(s.session.desired.count, "object"), excerpt.Count(n, "cluster"))
	}
	outcome.Unknown = v1alpha1.SuspendedReason
	outcome.Message = fmt.Sprintf("%s, and not up to date: %s; to continue there, set spec.paused of the KubernetesCluster to false; %s%s",
		pausedOf(len(behind), all), excerpt.Names(behind, namedClusters), done, s.notes())
	return outcome
}

// pausedNote says, to be appended to a message, which clusters are paused.
func (s *scope) pausedNote() string {
	paused, _ := s.pausedClusters()
	if len(paused) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s, without drift correction: %s", pausedOf(len(paused), len(s.session.targets)), excerpt.Names(paused, namedClusters))
}

func pausedOf(n, all int) string {
	is := "is"
	if n != 1 {
		is = "are"
	}
	return fmt.Sprintf("%d of %s %s paused", n, excerpt.Count(all, "cluster"), is)
}
