package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/observe"
)

func drift() chapter {
	return chapter{
		title: "Drift is corrected",
		text:  "Somebody works by hand, in a user cluster and in the hub. Nobody waits for an interval.",
		steps: []step{
			{title: "a Deployment deleted in berlin is back", limit: short, run: (*stage).deleteByHand},
			{title: "a Deployment scaled in dublin has its 2 replicas again", limit: short, run: (*stage).scaleByHand},
			{title: "a definition edited in the hub is as in git again", limit: short, run: (*stage).editByHand},
		},
	}
}

func (s *stage) deleteByHand(ctx context.Context) error {
	v, err := s.berlin.view(workloads("apps", "deployments", "team-a"))
	if err != nil {
		return err
	}
	was := v.Get("team-a", "web")
	if was == nil {
		return errors.New("there is no Deployment web in team-a of berlin")
	}
	if _, err := s.kubectl(ctx, s.berlin, "-n", "team-a", "delete", "deployment", "web", "--wait=false"); err != nil {
		return err
	}
	return v.Until(ctx, 1, observe.Named("web", func(o *observe.Object) bool {
		return o.GetUID() != was.GetUID()
	}))
}

func (s *stage) scaleByHand(ctx context.Context) error {
	v, err := s.dublin.view(workloads("apps", "deployments", "team-a"))
	if err != nil {
		return err
	}
	was := v.Get("team-a", "web")
	if was == nil {
		return errors.New("there is no Deployment web in team-a of dublin")
	}
	if _, err := s.kubectl(ctx, s.dublin, "-n", "team-a", "scale", "deployment", "web", "--replicas=5"); err != nil {
		return err
	}
	return v.Until(ctx, 1, observe.Named("web", observe.Both(editedTwice(was), func(o *observe.Object) bool {
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas") // always set by the API server
		return replicas == 2
	})))
}

func (s *stage) editByHand(ctx context.Context) error {
	v, err := s.hub.view(kind("applicationdefinitions"))
	if err != nil {
		return err
	}
	was := v.Get("", "web")
	if was == nil {
		return errors.New("there is no ApplicationDefinition web in the hub")
	}
	if _, err := s.kubectl(ctx, s.hub, "patch", "applicationdefinition", "web", "--type=merge",
		`--patch={"spec":{"displayName":"by hand"}}`); err != nil {
		return err
	}
	return v.Until(ctx, 1, observe.Named("web", observe.Both(editedTwice(was), observe.Has("Static page", "spec", "displayName"))))
}

// editedTwice matches an object that was changed and changed back since the state was: a watch may
// still show a state from before an edit that has just returned.
func editedTwice(was *observe.Object) observe.Match {
	return func(o *observe.Object) bool { return o.GetGeneration() >= was.GetGeneration()+2 }
}
