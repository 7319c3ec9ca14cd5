package main

import (
	"context"
	"errors"

	"waybill.dev/waybill/test/observe"
)

func placement() chapter {
	return chapter{
		title: "Scheduled to one cluster",
		text: "A KubernetesApplication is any set of objects that goes to exactly one cluster: whichever fits\n" +
			"and has room. Here an Application, with all that it is made of.",
		steps: []step{
			{title: "apply examples/placement/application.yaml to the hub", limit: short, run: (*stage).applyPlaced},
			{title: "a cluster was chosen, and holds all 5 objects", limit: long, run: (*stage).submitted},
			{title: "down to what runs there", limit: short, run: (*stage).showPlaced},
			{title: "where it runs cannot be changed under it", limit: short, run: (*stage).clusterSelectorRefused},
			{title: "delete it: the cluster gives all of it back", limit: long, run: (*stage).deletePlaced},
		},
	}
}

// notes is the KubernetesApplication of the chapter, which templates five objects.
const notes = "notes"

func (s *stage) applyPlaced(ctx context.Context) error {
	return s.apply(ctx, "placement/application.yaml")
}

func (s *stage) submitted(ctx context.Context) error {
	whole := observe.Named(notes, observe.Both(observe.Ready, observe.Has("Submitted", "status", "state")))
	if err := s.hub.until(ctx, kind("kubernetesapplications"), 1, whole); err != nil {
		return err
	}
	out, err := s.kubectl(ctx, s.hub, "-n", system, "get", "kubernetesapplications,kubernetesapplicationresources")
	s.say.output(out)
	return err
}

func (s *stage) showPlaced(ctx context.Context) error {
	return s.show(ctx, "tree", "kubernetesapplication/"+notes, "-n", system)
}

func (s *stage) clusterSelectorRefused(ctx context.Context) error {
	_, err := s.kubectl(ctx, s.hub, "-n", system, "patch", "kubernetesapplication", notes, "--type=merge",
		`--patch={"spec":{"clusterSelector":{"matchLabels":{"environment":"staging"}}}}`)
	if err == nil {
		return errors.New("a cluster selector was changed")
	}
	s.say.output(saidBy(err))
	return nil
}

func (s *stage) deletePlaced(ctx context.Context) error {
	if _, err := s.kubectl(ctx, s.hub, "-n", system, "delete", "kubernetesapplication", notes, "--wait=false"); err != nil {
		return err
	}
	if err := s.hub.until(ctx, kind("kubernetesapplications"), 0, observe.Any); err != nil {
		return err
	}
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, workloads("apps", "deployments", notes), 0, observe.Any)
	})
}
