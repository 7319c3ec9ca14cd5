package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"waybill.dev/waybill/cmd/internal/cli"
)

// The page names every verb and every flag, and none that is not there.
func TestDocs_nameWhatThereIs(t *testing.T) {
	content, err := os.ReadFile("../../api/docs/waybill.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(content), "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		for word := range strings.SplitSeq(title, ", ") {
			sections[word] = text
		}
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	root := newRoot(cli.NewEnv(streams, ""), "waybill")
	known := []string{"--help", "--version"}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		known = append(known, "--"+f.Name)
		if f.Name == "namespace" {
			return // as -n
		}
		assert.Contains(t, sections["What all verbs have in common"], "`--"+f.Name, "global flag")
	})
	for _, verb := range root.Commands() {
		if !verb.IsAvailableCommand() || verb.Name() == "completion" {
			continue
		}
		text, found := sections[verb.Name()]
		if !assert.True(t, found, "no section %s", verb.Name()) {
			continue
		}
		documentsFlags(t, verb, text, known)
		for _, sub := range verb.Commands() {
			assert.Contains(t, text, "`waybill "+verb.Name()+" "+sub.Name(), "verb of %s", verb.Name())
		}
	}
}

func documentsFlags(t *testing.T, verb *cobra.Command, text string, global []string) {
	t.Helper()
	known := slices.Clone(global)
	for _, one := range append([]*cobra.Command{verb}, verb.Commands()...) {
		one.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			known = append(known, "--"+f.Name)
			if f.Name != "help" {
				assert.Contains(t, text, "`--"+f.Name, "flag of %s", one.CommandPath())
			}
		})
	}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(text, -1) {
		if flag != "--show-managed-fields" && flag != "--cascade" { // of kubectl
			assert.Contains(t, known, flag, "%s has no such flag", verb.Name())
		}
	}
}
