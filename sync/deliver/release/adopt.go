package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// adopt returns the newest revision, which is deployed and says that it was made of what is desired, if
// that is so but was not noted, because the process that made it was killed: it follows what was noted, and its
// record is just what Helm makes of chart and values once more. Otherwise, and for a chart that renders
// differently each time, adopt returns nil. Since any user of the namespace may have copied such a record, what the
// revision before it has beyond it is deleted, as by the upgrade that it is said to come from.
func (s *session) adopt(ctx context.Context) (*helmrelease.Release, error) {
	newest, _ := s.observed.newest()
	before := Observed{Revisions: s.observed.Revisions[:len(s.observed.Revisions)-1], At: s.observed.At}
	last, _ := before.newest()
	known := 0
	if s.id.Known != nil {
		known = int(s.id.Known.Revision)
	}
	if newest.Number != known+1 || last.Number != known || known > 0 && !last.good() {
		return nil, nil
	}
	var earlier recorded
	if known > 0 {
		var err error
		if earlier, err = s.had(known); err != nil || !earlier.vouched {
			return nil, err
		}
	}
	again, err := s.remake(ctx, before)
	if err != nil {
		s.log.V(1).Info("cannot tell whether a revision was altered", "revision", newest.Number, "error", err.Error())
		return nil, nil
	}
	found := s.store.vouch(newest.Number, seal(again))
	if found == nil {
		return nil, nil
	}
	s.client.leftovers = []recorded{earlier}
	return found, s.prune(found)
}

// remake returns the release that an action would make of what is desired, given what was there before.
// It writes nothing.
func (s *session) remake(ctx context.Context, before Observed) (*helmrelease.Release, error) {
	j := s.job
	j.observed = before
	dry, err := newSession(ctx, j)
	if err != nil {
		return nil, err
	}
	defer dry.close()
	cfg, err := dry.configuration()
	if err != nil {
		return nil, err
	}
	const asServer = "server" // templates may look up what is in the cluster, as they did
	if _, ok := before.newest(); !ok {
		run := action.NewInstall(cfg)
		run.DryRun, run.DryRunOption = true, asServer
		return dry.runInstall(ctx, run, nil)
	}
	run := action.NewUpgrade(cfg)
	run.DryRun, run.DryRunOption = true, asServer
	return dry.runUpgrade(ctx, run, nil)
}
