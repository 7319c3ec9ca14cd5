package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/test/observe"
)

func refusal() chapter {
	return chapter{
		title: "Admission refuses what would break later",
		text:  "Version 1.1.0 of web is installed in both clusters: it cannot be taken out of the catalog.",
		steps: []step{
			{title: "refused from kubectl", limit: short, run: (*stage).refusedByHand},
			{title: "commit the same and push", limit: short, run: (*stage).commitRefused},
			{title: "refused from the commit: the GitSync says what, where and why", limit: short, sincePush: true, run: (*stage).refusedFromGit},
			{title: "revert the commit and push", limit: short, run: (*stage).commitReverted},
			{title: "the GitSync is Ready again", limit: short, sincePush: true, run: (*stage).accepted},
		},
	}
}

// removeVersion is the patch that removes version 1.1.0 from the definition and makes the other one
// the default.
const removeVersion = `[{"op":"replace","path":"/spec/defaultVersion","value":"1.0.0"},{"op":"remove","path":"/spec/versions/1"}]`

func (s *stage) refusedByHand(ctx context.Context) error {
	// The versions in use are reported to the hub shortly after the upgrade.
	used := observe.Named("web", func(o *observe.Object) bool {
		return strings.Contains(fmt.Sprint(o.Object["status"]), "1.1.0")
	})
	if err := s.hub.until(ctx, kind("applicationdefinitions"), 1, used); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, s.hub, "patch", "applicationdefinition", "web", "--type=json", "--patch="+removeVersion)
	if err == nil {
		return errors.New("a version that is in use was removed")
	}
	said := saidBy(err)
	s.say.output(said)
	if !strings.Contains(said, "1.1.0") || !strings.Contains(said, "team-a/web") {
		return errors.New("the refusal does not name the version and who uses it")
	}
	return nil
}

// saidBy returns the output of kubectl when it failed.
func saidBy(err error) string {
	_, said, _ := strings.Cut(err.Error(), "exit status 1: ")
	return said
}

const webDefinition = "catalog/web.yaml"

func (s *stage) commitRefused(ctx context.Context) error {
	file := filepath.Join(s.repo.Dir(), filepath.FromSlash(webDefinition))
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	kept, _, found := strings.Cut(string(content), "    - version: 1.1.0\n")
	if !found {
		return fmt.Errorf("edit %s: it does not offer version 1.1.0", webDefinition)
	}
	kept = strings.Replace(kept, "defaultVersion: 1.1.0", "defaultVersion: 1.0.0", 1)
	if err := os.WriteFile(file, []byte(kept), 0o600); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	return s.commit(ctx, "Offer web 1.0.0 only", "catalog")
}

func (s *stage) refusedFromGit(ctx context.Context) error {
	v, err := s.hub.view(kind("gitsyncs"))
	if err != nil {
		return err
	}
	refused := func(o *observe.Object) bool {
		status, reason, message := observe.Condition(o, "Ready")
		return status == "False" && reason == "ApplyFailed" && strings.Contains(message, webDefinition) && strings.Contains(message, "1.1.0")
	}
	if err := v.Until(ctx, 1, observe.Named("catalog", refused)); err != nil {
		return err
	}
	_, reason, message := observe.Condition(v.Get(system, "catalog"), "Ready")
	s.say.output("Ready=False " + reason + ": " + message)
	return nil
}

func (s *stage) commitReverted(ctx context.Context) error {
	s.say.command("git revert HEAD")
	if _, err := s.repo.Git(ctx, "revert", "--no-commit", "HEAD"); err != nil {
		return err
	}
	return s.commit(ctx, "Offer web 1.1.0 again", "catalog")
}

func (s *stage) accepted(ctx context.Context) error {
	revision, err := s.repo.Git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	return s.hub.until(ctx, kind("gitsyncs"), 1, observe.Named("catalog", observe.Both(observe.Ready, func(o *observe.Object) bool {
		return strings.Contains(fmt.Sprint(o.Object["status"]), revision)
	})))
}
