package main

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/observe"
)

// shop is the namespace of the story's Applications, in berlin.
const shop = "shop"

func applications() chapter {
	return chapter{
		title: "What belongs together",
		text: "Not all comes from a catalog. Somebody applies WordPress and a MySQL to berlin by hand, and says\n" +
			"which objects belong together; every installation of the catalog has such an Application too.",
		steps: []step{
			{title: "apply examples/application/aggregation: two Applications", limit: short, run: (*stage).applyApplications},
			{title: "both are Ready: 3 of 3 components each, owned", limit: long, run: (*stage).applicationsReady},
			{title: "an object that says nothing is marked as what it is part of", limit: short, run: (*stage).marked},
			{title: "the Application of MySQL cannot change its selector", limit: short, run: (*stage).selectorRefused},
			{title: "delete WordPress: its objects go, MySQL stays", limit: long, run: (*stage).deleteApplication},
			{title: "WordPress of the catalog, down to its Pods", limit: short, run: (*stage).showApplication},
		},
	}
}

func (s *stage) applyApplications(ctx context.Context) error {
	const path = "application/aggregation/wordpress.yaml"
	content, err := s.read(path)
	if err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, s.berlin, "create", "namespace", shop); err != nil {
		return err
	}
	s.say.command("kubectl --context berlin -n shop apply -f examples/" + path)
	_, err = s.berlin.Kubectl(ctx, content, "-n", shop, "apply", "-f", "-")
	return err
}

// shopApplications returns the Applications in shop.
func shopApplications() observe.Of {
	of := kind("applications")
	of.Namespace = shop
	return of
}

func (s *stage) applicationsReady(ctx context.Context) error {
	whole := observe.Both(observe.Ready, observe.Has("3/3", "status", "componentsReady"))
	if err := s.berlin.until(ctx, shopApplications(), 2, whole); err != nil {
		return err
	}
	out, err := s.kubectl(ctx, s.berlin, "-n", shop, "get", "applications.apps.waybill.dev")
	s.say.output(out)
	return err
}

// themes is an Application of all ConfigMaps with one label, and such a ConfigMap, which does not
// mention an Application.
const themes = `
apiVersion: apps.waybill.dev/v1alpha1
kind: Application
metadata: {name: themes}
spec:
  type: themes
  selector: {matchLabels: {app: themes}}
  components: [{kind: ConfigMap}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, labels: {app: themes}}
data: {background: blue}
`

func (s *stage) marked(ctx context.Context) error {
	s.say.command("kubectl --context berlin -n shop apply -f themes.yaml")
	if _, err := s.berlin.Kubectl(ctx, themes, "-n", shop, "apply", "-f", "-"); err != nil {
		return err
	}
	of := workloads("", "configmaps", shop)
	of.Selector = "app.kubernetes.io/part-of=themes"
	return s.berlin.until(ctx, of, 1, observe.Has("themes", "metadata", "annotations", v1alpha1.ApplicationAnnotation))
}

func (s *stage) selectorRefused(ctx context.Context) error {
	_, err := s.kubectl(ctx, s.berlin, "-n", shop, "patch", "applications.apps.waybill.dev", "mysql", "--type=merge",
		`--patch={"spec":{"selector":{"matchLabels":{"app":"other"}}}}`)
	if err == nil {
		return errors.New("a selector was changed")
	}
	s.say.output(saidBy(err))
	return nil
}

func (s *stage) deleteApplication(ctx context.Context) error {
	if _, err := s.kubectl(ctx, s.berlin, "-n", shop, "delete", "applications.apps.waybill.dev", "wordpress", "--wait=false"); err != nil {
		return err
	}
	sets := workloads("apps", "statefulsets", shop)
	if err := s.berlin.until(ctx, sets, 0, observe.Named("wordpress-webserver", observe.Any)); err != nil {
		return err
	}
	if err := s.berlin.until(ctx, sets, 1, observe.Any); err != nil {
		return fmt.Errorf("the StatefulSet of MySQL: %w", err)
	}
	return s.berlin.until(ctx, shopApplications(), 1, observe.Named("mysql", observe.Ready))
}

func (s *stage) showApplication(ctx context.Context) error {
	return s.show(ctx, "tree", "application/wordpress", "-n", "blog", "--cluster", "berlin")
}
