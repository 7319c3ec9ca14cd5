package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// seedStory returns the chapters of SEED=1: the clusters are those of a seed, which gets its catalog from the hub.
func seedStory() []chapter {
	return []chapter{
		{
			title: "From nothing",
			text:  "A hub for the catalog, a seed in Europe, and its two user clusters: four API servers.",
			steps: []step{
				{title: "build Waybill's programs", limit: 10 * time.Minute, run: (*stage).build},
				{title: "start the clusters hub, europe, berlin and dublin", limit: 15 * time.Minute, run: (*stage).startWithSeed},
				{title: "start a git server, a Helm repository and an OCI registry", limit: long, run: (*stage).startServers},
				{title: "install Waybill in the hub", limit: long, run: (*stage).installHub},
				{title: "install Waybill in europe, as in a hub", limit: long, run: (*stage).installSeed},
				{title: "register berlin and dublin in europe", limit: long, run: (*stage).register},
				{title: "start waybill-webhook and the agent for berlin and dublin", limit: long, run: (*stage).installUsers},
				{title: "register europe in the hub, as a seed", limit: long, run: (*stage).registerSeed},
			},
		},
		{
			title: "From a commit, through the seed, to running applications",
			text:  "The hub follows the catalog. The seed follows what two teams want in its clusters.",
			steps: []step{
				{title: "the hub has the credentials, and europe gets them", limit: short, run: (*stage).credentialsInSeed},
				{title: "the hub knows the catalog's folder, europe those of the teams", limit: short, run: (*stage).followWithSeed},
				{title: "commit examples/ and push", limit: short, run: (*stage).commitAllWithSeed},
				{title: "the catalog is in the hub: 5 definitions", limit: short, sincePush: true, run: (*stage).catalogInHub},
				{title: "europe has it: 5 copies, with the sources", limit: short, sincePush: true, run: (*stage).catalogInSeed},
				{title: "berlin and dublin see it: 5 copies each, without the sources", limit: short, sincePush: true, run: (*stage).copies},
				{title: "web runs in berlin and dublin: 2 Pods each are Ready", limit: long, sincePush: true, run: (*stage).webRuns},
				{title: "all 6 installations are Ready, WordPress and its MySQL too", limit: long, sincePush: true, run: (*stage).allReady},
				{title: "the hub knows by what its catalog is used", limit: short, sincePush: true, run: (*stage).usedThroughSeed},
				{title: "a copy edited in europe is as in the hub again", limit: short, run: (*stage).editInSeed},
				{title: "and what is used there cannot be deleted in the hub", limit: short, run: (*stage).refusedThroughSeed},
			},
		},
		{
			title: "The hub is lost",
			text:  "Its programs are stopped. The seed and its clusters do not notice.",
			steps: []step{
				{title: "stop waybill-sync and waybill-webhook of the hub", limit: short, run: (*stage).loseHub},
				{title: "a Deployment deleted in berlin is back", limit: short, run: (*stage).deleteByHand},
				{title: "team A commits version 1.1.0 of web and pushes", limit: short, run: (*stage).commitUpgradeInSeed},
				{title: "both clusters run it: release revision 2, new Pods Ready", limit: long, sincePush: true, run: (*stage).upgraded},
				{title: "start the hub again: it knows of the new version", limit: long, run: (*stage).findHub},
			},
		},
		{
			title: "What there is now",
			steps: []step{
				{title: "the clusters of the hub, and of the seed", limit: short, run: (*stage).showClusters},
				{title: "the whole fleet, from the hub", limit: short, run: (*stage).showInstallations},
				{title: "from a definition down to what runs", limit: short, run: (*stage).showDefinition},
			},
		},
	}
}

func (s *stage) startWithSeed(ctx context.Context) error {
	clusters, err := env.StartClusters(ctx,
		env.Options{Name: "hub", NoControllers: true},
		env.Options{Name: "europe", NoControllers: true},
		env.Options{Name: "berlin", Pods: true},
		env.Options{Name: "dublin", Pods: true},
	)
	if err != nil {
		return err
	}
	s.hub, s.seed, s.berlin, s.dublin = s.place(clusters[0]), s.place(clusters[1]), s.place(clusters[2]), s.place(clusters[3])
	return nil
}

func (s *stage) installSeed(ctx context.Context) error { return s.installIn(ctx, s.seed) }

// registerSeed registers the seed with the hub.
func (s *stage) registerSeed(ctx context.Context) error {
	if err := s.registerIn(ctx, s.hub, s.seed); err != nil {
		return err
	}
	return s.hub.until(ctx, kind("kubernetesclusters"), 1, observe.Ready)
}

func (s *stage) credentialsInSeed(ctx context.Context) error {
	if err := s.applyCredentials(ctx); err != nil {
		return err
	}
	secrets := workloads("", "secrets", system)
	return errors.Join(
		s.seed.until(ctx, secrets, 1, observe.Named("git-examples", observe.Any)),
		s.seed.until(ctx, secrets, 1, observe.Named(authority, observe.Any)),
	)
}

func (s *stage) followWithSeed(ctx context.Context) error {
	if err := s.applyTo(ctx, s.hub, "gitsync/catalog.yaml"); err != nil {
		return err
	}
	if err := s.applyTo(ctx, s.seed, "gitsync/team-a.yaml", "gitsync/team-b.yaml"); err != nil {
		return err
	}
	waiting := func(o *observe.Object) bool {
		_, reason, _ := observe.Condition(o, "Ready")
		return reason == "PathNotFound"
	}
	return errors.Join(s.hub.until(ctx, kind("gitsyncs"), 1, waiting), s.seed.until(ctx, kind("gitsyncs"), 2, waiting))
}

func (s *stage) commitAllWithSeed(ctx context.Context) error {
	if err := s.fillRepository(); err != nil {
		return err
	}
	if err := s.commit(ctx, "Publish the catalog, and what two teams want of it", "catalog"); err != nil {
		return err
	}
	_, err := s.waybillAt(ctx, s.seed, "reconcile", "-n", system, "--wait=false", "gitsync/team-a", "gitsync/team-b")
	return err
}

// catalogInSeed waits until the seed has all definitions with their sources, and its own controller has
// taken them up.
func (s *stage) catalogInSeed(ctx context.Context) error {
	return s.seed.until(ctx, kind("applicationdefinitions"), definitionCount, func(o *observe.Object) bool {
		return observe.Ready(o) && strings.Contains(fmt.Sprint(o.Object["spec"]), "template:map[source:")
	})
}

func (s *stage) usedThroughSeed(ctx context.Context) error {
	const user = "waybill-system/europe/waybill-system/berlin/team-a/web"
	err := s.hub.until(ctx, kind("applicationdefinitions"), 1, observe.Named("web", func(o *observe.Object) bool {
		return strings.Contains(fmt.Sprint(o.Object), user)
	}))
	if err == nil {
		s.say.output("status.usedBy: " + user)
	}
	return err
}

func (s *stage) editInSeed(ctx context.Context) error {
	v, err := s.seed.view(kind("applicationdefinitions"))
	if err != nil {
		return err
	}
	was := v.Get("", "web").GetGeneration()
	// By hand, admission refuses it. A change in the name of the hub's field manager, and with its rights, is corrected.
	if _, err := s.kubectl(ctx, s.seed, "patch", "applicationdefinition", "web", "--type=merge",
		"--field-manager=waybill", `--patch={"spec":{"description":"not what the hub says"}}`); err != nil {
		return err
	}
	return v.Until(ctx, 1, observe.Named("web", func(o *observe.Object) bool {
		return o.GetGeneration() > was+1 && !strings.Contains(fmt.Sprint(o.Object), "not what the hub says")
	}))
}

func (s *stage) refusedThroughSeed(ctx context.Context) error {
	_, err := s.kubectl(ctx, s.hub, "delete", "applicationdefinition", "web")
	if err == nil {
		return errors.New("a definition that is in use was deleted")
	}
	said := saidBy(err)
	s.say.output(said)
	if !strings.Contains(said, "europe/waybill-system/berlin/team-a/web") {
		return errors.New("the refusal does not name who uses it")
	}
	return nil
}

func (s *stage) loseHub(ctx context.Context) error {
	kept := s.programs[:0:0]
	for _, p := range s.programs {
		if !strings.HasSuffix(p.name, " of hub") {
			kept = append(kept, p)
			continue
		}
		if err := p.process.Stop(ctx); err != nil {
			return err
		}
	}
	s.programs = kept
	return nil
}

func (s *stage) commitUpgradeInSeed(ctx context.Context) error {
	if err := s.edit(webInstallation, "version: 1.0.0", "version: 1.1.0"); err != nil {
		return err
	}
	if err := s.commit(ctx, "Upgrade web to 1.1.0"); err != nil {
		return err
	}
	_, err := s.waybillAt(ctx, s.seed, "reconcile", "-n", system, "--wait=false", "gitsync/team-a")
	return err
}

func (s *stage) findHub(ctx context.Context) error {
	if err := s.startPrograms(ctx, s.hub); err != nil {
		return err
	}
	return s.hub.until(ctx, kind("applicationdefinitions"), 1, observe.Named("web", func(o *observe.Object) bool {
		status, _ := o.Object["status"].(map[string]any)
		return strings.Contains(fmt.Sprint(status["usedBy"]), "1.1.0")
	}))
}

func (s *stage) showClusters(ctx context.Context) error {
	return s.show(ctx, "get", "clusters", "--all-clusters", "-o", "wide")
}

func (s *stage) showInstallations(ctx context.Context) error {
	return s.show(ctx, "get", "installations", "--all-clusters")
}

func (s *stage) showDefinition(ctx context.Context) error {
	return s.show(ctx, "tree", "definition/web")
}
