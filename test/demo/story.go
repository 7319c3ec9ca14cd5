package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// Limits of the steps. They are meant for busy machines; an idle one needs a fraction.
const (
	short = env.Limit
	long  = 3 * time.Minute
)

// story returns the chapters that the demo plays, in order.
func story() []chapter {
	return []chapter{
		fromNothing(),
		firstCommit(),
		upgrade(),
		drift(),
		applications(),
		placement(),
		removal(),
		refusal(),
		look(),
	}
}

func firstCommit() chapter {
	return chapter{
		title: "A commit becomes running applications",
		text: "The hub is told once where the repository is. Then the platform team commits a catalog,\n" +
			"and two teams commit what they want: team A in every production cluster, team B in dublin.",
		steps: []step{
			{title: "the hub knows the repository, which is empty yet", limit: short, run: (*stage).follow},
			{title: "commit examples/ and push", limit: short, run: (*stage).commitAll},
			{title: "the catalog is in the hub: 5 definitions", limit: short, sincePush: true, run: (*stage).catalogInHub},
			{title: "berlin and dublin see it: 5 copies each, without the sources", limit: short, sincePush: true, run: (*stage).copies},
			{title: "team A's installations are in both, team B's in dublin", limit: short, sincePush: true, run: (*stage).installations},
			{title: "web runs in berlin and dublin: 2 Pods each are Ready", limit: long, sincePush: true, run: (*stage).webRuns},
			{title: "all 6 installations are Ready, WordPress and its MySQL too", limit: long, sincePush: true, run: (*stage).allReady},
			{title: "the hub says so too: every GitSync is Ready", limit: long, sincePush: true, run: (*stage).syncsReady},
		},
	}
}

// follow applies the credentials and the GitSyncs, which wait for their folders to appear.
func (s *stage) follow(ctx context.Context) error {
	if err := s.applyCredentials(ctx); err != nil {
		return err
	}
	if err := s.apply(ctx, "gitsync/catalog.yaml", "gitsync/team-a.yaml", "gitsync/team-b.yaml"); err != nil {
		return err
	}
	return s.hub.until(ctx, kind("gitsyncs"), len(syncs), func(o *observe.Object) bool {
		_, reason, _ := observe.Condition(o, "Ready")
		return reason == "PathNotFound"
	})
}

// syncs are the names of the story's GitSyncs.
var syncs = []string{"catalog", "team-a", "team-b"}

func (s *stage) commitAll(ctx context.Context) error {
	if err := s.fillRepository(); err != nil {
		return err
	}
	return s.commit(ctx, "Publish the catalog, and what two teams want of it", syncs...)
}

const definitionCount = 5

func (s *stage) catalogInHub(ctx context.Context) error {
	return s.hub.until(ctx, kind("applicationdefinitions"), definitionCount, observe.Any)
}

func (s *stage) copies(ctx context.Context) error {
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, kind("applicationdefinitions"), definitionCount, observe.Any)
	})
}

// installed returns how many installations a user cluster gets.
func (s *stage) installed(p *place) int {
	if p == s.dublin {
		return 4
	}
	return 2
}

func (s *stage) installations(ctx context.Context) error {
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, kind("applicationinstallations"), s.installed(p), observe.Any)
	})
}

func (s *stage) webRuns(ctx context.Context) error {
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, podsOf("team-a", "web"), 2, podReady)
	})
}

func (s *stage) allReady(ctx context.Context) error {
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, kind("applicationinstallations"), s.installed(p), observe.Ready)
	})
}

func (s *stage) syncsReady(ctx context.Context) error {
	return s.hub.until(ctx, kind("gitsyncs"), len(syncs), observe.Ready)
}

func upgrade() chapter {
	return chapter{
		title: "An upgrade by commit",
		text:  "Team A wants version 1.1.0 of web. Another chart is fetched, a Job runs as its hook.",
		steps: []step{
			{title: "commit the new version and push", limit: short, run: (*stage).commitUpgrade},
			{title: "both clusters run it: release revision 2, new Pods Ready", limit: long, sincePush: true, run: (*stage).upgraded},
		},
	}
}

const webInstallation = "installations/team-a/web.yaml"

func (s *stage) commitUpgrade(ctx context.Context) error {
	if err := s.edit(webInstallation, "version: 1.0.0", "version: 1.1.0"); err != nil {
		return err
	}
	return s.commit(ctx, "Upgrade web to 1.1.0", "team-a")
}

func (s *stage) upgraded(ctx context.Context) error {
	const image = "nginx:1.29-alpine"
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		isNew := observe.Has("1.1.0", "status", "application", "version")
		return errors.Join(
			p.until(ctx, kind("applicationinstallations"), 1, observe.Named("web", observe.Both(observe.Ready, isNew))),
			p.until(ctx, podsOf("team-a", "web"), 2, observe.Both(podReady, runs(image))),
		)
	})
}

func removal() chapter {
	return chapter{
		title: "A removal by commit",
		text:  "Team A no longer wants its blog.",
		steps: []step{
			{title: "delete the files and push", limit: short, run: (*stage).commitRemoval},
			{title: "WordPress is uninstalled in both clusters, its Pods are gone", limit: long, sincePush: true, run: (*stage).removed},
		},
	}
}

func (s *stage) commitRemoval(ctx context.Context) error {
	s.say.command("git rm installations/team-a/wordpress*.yaml")
	if _, err := s.repo.Git(ctx, "rm", "--quiet", "installations/team-a/wordpress.yaml", "installations/team-a/wordpress-values.yaml"); err != nil {
		return err
	}
	return s.commit(ctx, "Give up the blog", "team-a")
}

func (s *stage) removed(ctx context.Context) error {
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return errors.Join(
			p.until(ctx, kind("applicationinstallations"), 0, observe.Named("wordpress", observe.Any)),
			p.until(ctx, workloads("apps", "statefulsets", "blog"), 0, observe.Any),
			p.until(ctx, workloads("", "pods", "blog"), 0, observe.Any),
		)
	})
}

func look() chapter {
	return chapter{
		title: "What there is now",
		steps: []step{
			{title: "the whole fleet", limit: short, run: (*stage).showFleet},
			{title: "from a git path down to what runs", limit: short, run: (*stage).showTree},
		},
	}
}

func (s *stage) showFleet(ctx context.Context) error {
	return s.show(ctx, "get", "-A", "--all-clusters")
}

func (s *stage) showTree(ctx context.Context) error {
	return s.show(ctx, "tree", "gitsync/team-a", "-n", system)
}

// show runs the CLI and shows its output.
func (s *stage) show(ctx context.Context, args ...string) error {
	out, err := s.waybill(ctx, args...)
	if err != nil {
		return err
	}
	if out == "" {
		return fmt.Errorf("waybill %s printed nothing", shown(args))
	}
	s.say.output(out)
	return nil
}
