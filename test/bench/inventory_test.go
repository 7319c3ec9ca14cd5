package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
	"waybill.dev/waybill/test/program"
)

const (
	// inventorySize is how many KubernetesClusters there are, each with so many installations in short.
	inventorySize, installationsEach = 1000, 20
	// inventoryRSS is the maximum peak memory of the hub's process with all of them, in MiB.
	inventoryRSS = 400
	// inShortVersion is the version of all installations in short but one.
	inShortVersion = "1.0.0"
)

// inventory is a hub with KubernetesClusters that cannot be reached; what is known of them is in their
// status.
type inventory struct {
	*hub
	process waybill
	catalog *observe.View
	cli     func(args ...string) string
}

func inventoryName(i int) string { return fmt.Sprintf("cluster-%04d", i) }

func startInventory(b *testing.B) *inventory {
	b.Helper()
	t := &inventory{hub: startHub(b, false)}
	t.defineApplication(b, "fifty")
	nowhere, err := env.FreeAddress()
	require.NoError(b, err)
	config, err := t.AddUser(syncUser, "system:masters")
	require.NoError(b, err)
	config.Host = "https://" + nowhere
	kubeconfig, err := env.Kubeconfig("nowhere", config)
	require.NoError(b, err)
	t.register(b, inventoryName(0), kubeconfig, nil)
	spec := map[string]any{"kubeconfigSecretRef": map[string]any{"name": inventoryName(0)}}
	require.NoError(b, parallel(inventorySize-1, func(i int) error {
		_, err := t.client.Resource(clusters).Namespace(system).Create(b.Context(), kubernetesCluster(inventoryName(i+1), nil, spec), metav1.CreateOptions{})
		return err
	}))
	known := t.view(b, clusters, system)
	t.catalog = t.view(b, definitions, "")
	t.process = startSync(b, t.hub)
	await(b, known, inventorySize, func(o *observe.Object) bool {
		_, reason, _ := observe.Condition(o, "Ready")
		return reason == "ClusterUnreachable"
	})
	require.NoError(b, parallel(inventorySize, func(i int) error { return t.summarize(b, i, inShortVersion, installationsEach) }))
	await(b, t.catalog, 1, t.usedBy(inShortVersion, inventorySize*installationsEach))
	t.cli = t.commandLine(b)
	return t
}

// commandLine builds the program, and returns what runs it.
func (t *inventory) commandLine(b *testing.B) func(...string) string {
	b.Helper()
	bin, err := program.Build(b.Context(), program.CLI)
	require.NoError(b, err)
	kubeconfig := t.kubeconfigOf(b, "somebody")
	return func(args ...string) string {
		b.Helper()
		cmd := exec.CommandContext(b.Context(), filepath.Join(bin, program.CLI), append(args, "--kubeconfig="+kubeconfig)...)
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, string(out))
		return string(out)
	}
}

// summarize writes what is known of the installations of the i-th cluster: all have one version, but
// the first, which has that. count is how many there are.
func (t *inventory) summarize(b *testing.B, i int, first string, count int) error {
	var all []map[string]any
	for n := range installationsEach {
		version := inShortVersion
		if n == 0 {
			version = first
		}
		all = append(all, map[string]any{
			"namespace": fmt.Sprintf("team-%02d", n), "name": fmt.Sprintf("application-%02d", n),
			"definition": definition, "version": version, "ready": "True",
		})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"installations": all, "installationCount": count}})
	if err != nil {
		return err
	}
	_, err = t.client.Resource(clusters).Namespace(system).Patch(b.Context(), inventoryName(i), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// usedBy matches a definition of which a version is used by that many installations.
func (t *inventory) usedBy(version string, count int) observe.Match {
	return func(o *observe.Object) bool {
		text, err := json.Marshal(o.Object["status"])
		return err == nil && strings.Contains(string(text), fmt.Sprintf(`"count":%d,`, count)) && strings.Contains(string(text), fmt.Sprintf(`"version":%q`, version))
	}
}

// inventory1000 measures the memory of the hub's process with 1,000 KubernetesClusters of 20 installations
// in short each, none of which can be reached, and how long it takes until `waybill get` shows that something
// in one of them has changed: another version, which the hub counts with the definition, and another number,
// in the table of all clusters. The time includes that of the command.
func inventory1000(b *testing.B, s *results) {
	t := startInventory(b)
	var listed, counted samples
	for run := 1; b.Loop(); run++ {
		began := time.Now()
		require.NoError(b, t.summarize(b, run%inventorySize, inShortVersion, 1000+run))
		require.Contains(b, t.cli("get", "clusters", "-n", system), fmt.Sprint(1000+run))
		listed.since(began)

		version := fmt.Sprintf("1.0.%d", run)
		began = time.Now()
		require.NoError(b, t.summarize(b, run%inventorySize, version, installationsEach))
		await(b, t.catalog, 1, t.usedBy(version, 1))
		require.Contains(b, t.cli("get", "definition", definition, "-o", "json"), fmt.Sprintf("%q", version))
		counted.since(began)
	}
	s.atMost("", counted.median(), "s", 1)
	s.atMost("list", listed.median(), "s", 1)
	s.atMost("rss", t.process.peak(b), "MiB", inventoryRSS)
}
