package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
)

// examples is the folder that the story is played with.
func examples() (string, error) {
	root, err := env.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "examples"), nil
}

// registryURL is the registry's address in examples/, with the blanks before it: our
// registry speaks plain HTTP, which a definition has to say.
var registryURL = regexp.MustCompile(`( *)url: oci://registry\.example\.com/charts`)

// localise puts the addresses of our servers for those that stand in examples/.
func (s *stage) localise(text string) string {
	text = strings.ReplaceAll(text, "https://git.example.com/platform/examples.git", s.repo.URL())
	text = strings.ReplaceAll(text, "https://charts.example.com", s.charts.URL())
	return registryURL.ReplaceAllString(text, "${1}url: "+s.registry.URL()+"\n${1}plainHTTP: true")
}

// read returns a file of examples/ with our addresses.
func (s *stage) read(path string) (string, error) {
	folder, err := examples()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path)))
	if err != nil {
		return "", fmt.Errorf("read example: %w", err)
	}
	return s.localise(string(content)), nil
}

// apply applies files of examples/ to the hub.
func (s *stage) apply(ctx context.Context, paths ...string) error {
	s.say.command("kubectl --context hub apply -f examples/" + strings.Join(paths, " -f examples/"))
	for _, path := range paths {
		content, err := s.read(path)
		if err != nil {
			return err
		}
		if _, err := s.hub.Kubectl(ctx, content, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// applyGitCredentials applies the Secret for our git server: that of examples/ with what
// one fills in on the way, and the authority of the server's certificate.
func (s *stage) applyGitCredentials(ctx context.Context) error {
	content, err := s.read("credentials/git.yaml")
	if err != nil {
		return err
	}
	var secret map[string]any
	if err := yaml.Unmarshal([]byte(content), &secret); err != nil {
		return fmt.Errorf("read example: %w", err)
	}
	ca, err := env.CA()
	if err != nil {
		return err
	}
	secret["stringData"] = map[string]any{"username": gitUser, "password": gitPassword, "ca.crt": string(ca)}
	filled, err := yaml.Marshal(secret)
	if err != nil {
		return fmt.Errorf("write example: %w", err)
	}
	s.say.command("kubectl --context hub apply -f examples/credentials/git.yaml")
	_, err = s.hub.Kubectl(ctx, string(filled), "apply", "-f", "-")
	return err
}

// committed are the folders of examples/ that go into the repository.
var committed = []string{"catalog", "charts", "installations", "kustomize"}

// fillRepository writes examples/ into the working copy.
func (s *stage) fillRepository() error {
	folder, err := examples()
	if err != nil {
		return err
	}
	var failed error
	for _, name := range committed {
		failed = errors.Join(failed, s.copyFolder(folder, name))
	}
	return failed
}

func (s *stage) copyFolder(folder, name string) error {
	return filepath.WalkDir(filepath.Join(folder, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := s.read(filepath.ToSlash(relative))
		if err != nil {
			return err
		}
		target := filepath.Join(s.repo.Dir(), relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(content), 0o600)
	})
}
