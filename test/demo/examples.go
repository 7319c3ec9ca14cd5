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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
)

// examples returns the folder with the files of the story.
func examples() (string, error) {
	root, err := env.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "examples"), nil
}

// chartURL matches the sources of charts in examples/, with their indentation.
var chartURL = regexp.MustCompile(`( *)url: (https://charts\.example\.com|oci://registry\.example\.com/charts)\n`)

// authority is the name of the Secret with the certificate authority of our servers, which is not
// publicly trusted.
const authority = "charts-ca"

// localise replaces the addresses in examples/ with those of our servers, and adds the certificate
// authority to trust.
func (s *stage) localise(text string) string {
	text = chartURL.ReplaceAllString(text, "${1}url: $2\n${1}caSecretRef:\n${1}  name: "+authority+"\n")
	return strings.NewReplacer(
		"https://git.example.com/platform/examples.git", s.repo.URL(),
		"https://charts.example.com", s.charts.URL(),
		"oci://registry.example.com/charts", s.registry.URL(),
	).Replace(text)
}

// read returns a file in examples/ with our addresses.
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

// apply applies files in examples/ to the hub.
func (s *stage) apply(ctx context.Context, paths ...string) error {
	return s.applyTo(ctx, s.hub, paths...)
}

// applyTo applies files in examples/ to a place.
func (s *stage) applyTo(ctx context.Context, p *place, paths ...string) error {
	s.say.command("kubectl --context " + p.Name() + " apply -f examples/" + strings.Join(paths, " -f examples/"))
	for _, path := range paths {
		content, err := s.read(path)
		if err != nil {
			return err
		}
		if _, err := p.Kubectl(ctx, content, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// applyCredentials applies the Secrets for our servers: the one in examples/ for git, filled in,
// and one with the authority of the servers' certificates.
func (s *stage) applyCredentials(ctx context.Context) error {
	content, err := s.read("credentials/git.yaml")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := yaml.UnmarshalStrict([]byte(content), secret); err != nil {
		return fmt.Errorf("read example: %w", err)
	}
	ca, err := env.CA()
	if err != nil {
		return err
	}
	secret.StringData = map[string]string{"username": gitUser, "password": gitPassword, "ca.crt": string(ca)}
	s.say.command("kubectl --context hub apply -f examples/credentials/git.yaml")
	if err := s.applySecret(ctx, secret); err != nil {
		return err
	}
	secret.Name, secret.StringData = authority, map[string]string{"ca.crt": string(ca)}
	return s.applySecret(ctx, secret)
}

func (s *stage) applySecret(ctx context.Context, secret *corev1.Secret) error {
	manifest, err := yaml.Marshal(secret)
	if err != nil {
		return fmt.Errorf("write Secret: %w", err)
	}
	_, err = s.hub.Kubectl(ctx, string(manifest), "apply", "-f", "-")
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
