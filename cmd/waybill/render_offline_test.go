package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"waybill.dev/waybill/cmd/internal/cli"
)

// unplugged has the program fail where it would use the network or a cluster: every connection would go
// to a proxy that counts it.
func unplugged(t *testing.T) *atomic.Int32 {
	t.Helper()
	requests := &atomic.Int32{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("KUBECONFIG", filepath.Join(write(t, map[string]string{"kubeconfig": "apiVersion: v1\nkind: Config\n"}), "kubeconfig"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return requests
}

// Nothing is fetched, whatever the source is, and the error says what to do.
func TestRender_offlineFetchesNothing(t *testing.T) {
	requests := unplugged(t)
	git := "apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata: {name: a, namespace: a}\nspec: {url: \"http://127.0.0.1:1/a.git\"}\n"
	inst := func(name string) string {
		return "apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationInstallation\nmetadata: {name: a, namespace: a}\nspec: {applicationRef: {name: a, version: 1.0.0}}\n---\n" +
			"apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationDefinition\nmetadata: {name: a}\nspec: {versions: [{version: 1.0.0, template: {source: {" + name + "}}}]}\n"
	}
	chart := write(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: b, version: 1.0.0, repository: \"http://127.0.0.1:1\"}]\n",
	})
	for name, tc := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"a GitSync":         {git, []string{"-f", "-"}, "http://127.0.0.1:1/a.git is not fetched with --offline: name a local copy with --source http://127.0.0.1:1/a.git=FOLDER"},
		"a chart in git":    {inst("git: {remote: \"http://127.0.0.1:1/a.git\", path: a}"), []string{"-f", "-"}, "http://127.0.0.1:1/a.git is not fetched with --offline"},
		"a Helm repository": {inst("helm: {url: \"http://127.0.0.1:1\", chartName: a, chartVersion: 1.0.0}"), []string{"-f", "-"}, "http://127.0.0.1:1 is not fetched with --offline"},
		"a registry":        {inst("helm: {url: \"oci://127.0.0.1:1/a\", plainHTTP: true, chartName: a, chartVersion: 1.0.0}"), []string{"-f", "-"}, "oci://127.0.0.1:1/a is not fetched with --offline"},
		"a dependency":      {"", []string{"--path", chart}, "dependencies are not fetched with --offline: run `helm dependency build` before"},
		"another version":   {inst("helm: {url: \"http://127.0.0.1:1\", chartName: web, chartVersion: 9.0.0}"), []string{"-f", "-", "--source", "http://127.0.0.1:1=../../examples/charts"}, "has version 1.1.0, and 9.0.0 is wanted: choose a version with --version"},
		"no such chart":     {inst("helm: {url: \"http://127.0.0.1:1\", chartName: none, chartVersion: 9.0.0}"), []string{"-f", "-", "--source", "http://127.0.0.1:1/=../../examples/charts"}, "no chart none in ../../examples/charts, which stands for http://127.0.0.1:1"},
		"no such folder":    {git, []string{"-f", "-", "--source", "http://127.0.0.1:1/a.git=nowhere"}, "--source http://127.0.0.1:1/a.git=nowhere: "},
		"no folder":         {git, []string{"-f", "-", "--source", "nowhere"}, "--source nowhere: must be URL=FOLDER"},
	} {
		t.Run(name, func(t *testing.T) {
			got := waybillWith(t, tc.in, append([]string{"render", "--offline"}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
	assert.Zero(t, requests.Load())
}

// commandLine matches a command of waybill in the documentation: of an example of a page, which begins
// with a prompt, of an indented block, or of a help text. It may be continued on the next line.
var commandLine = regexp.MustCompile(`(?m)^(?:\$ |    |  )(waybill [a-z](?:.*\\\n)*.*)$`)

// documented returns the commands of the pages and of the help texts.
func documented(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../api/docs/*.md")
	require.NoError(t, err)
	var texts []string
	for _, page := range append(pages, "../../README.md", "../../examples/README.md", "../../charts/waybill/README.md") {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		texts = append(texts, string(content))
	}
	for _, verb := range newRoot(cli.NewEnv(genericiooptions.NewTestIOStreamsDiscard(), ""), "waybill").Commands() {
		texts = append(texts, verb.Example)
	}
	var commands []string
	for _, text := range texts {
		for _, found := range commandLine.FindAllStringSubmatch(text, -1) {
			commands = append(commands, strings.ReplaceAll(found[1], "\\\n", " "))
		}
	}
	return commands
}

// words splits a command into its arguments, up to where a shell would take over.
func words(command string) []string {
	command, _, _ = strings.Cut(command, " | ")
	command, _, _ = strings.Cut(command, " > ")
	var args []string
	for _, word := range strings.Fields(command)[1:] {
		args = append(args, strings.Trim(word, "'\""))
	}
	return args
}

// Every command of the documentation has the form that its verb takes; those that need no cluster do
// what they say, in a clone of the examples, without a network.
func TestDocs_commandsAreRight(t *testing.T) {
	requests := unplugged(t)
	commands := documented(t)
	t.Chdir("../../examples")
	offline := 0
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			args := words(command)
			root := newRoot(cli.NewEnv(genericiooptions.NewTestIOStreamsDiscard(), ""), "waybill")
			verb, rest, err := root.Find(args)
			require.NoError(t, err)
			require.NoError(t, verb.ParseFlags(rest))
			require.NoError(t, verb.ValidateArgs(verb.Flags().Args()))
			if !local(verb) {
				return
			}
			offline++
			got := waybillWith(t, "", args...)
			assert.Equal(t, 0, got.code, got.errOut)
			if verb.Name() == "render" {
				assert.Contains(t, got.out, "kind: ")
			}
		})
	}
	assert.GreaterOrEqual(t, offline, 8, "commands that need no cluster: %q", commands)
	assert.Zero(t, requests.Load())
}

// local reports whether a command needs no cluster.
func local(verb *cobra.Command) bool {
	set := verb.Flags().Changed
	return verb.Name() == "validate" || verb.Name() == "render" && (set("path") || set("offline"))
}
