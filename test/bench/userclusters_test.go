package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// servers is how many API servers user clusters share.
	servers = 10
	// starting is how many of them start at a time: on two cores, ten at once would exceed the time
	// limit for each.
	starting = 3
)

// userClusters are the user clusters of a hub, each behind a gate. Up to ten clusters each have their
// own API server. Of 20 clusters, two share each API server, with separate namespaces, because a machine
// with two cores cannot run 20 API servers.
type userClusters struct {
	users []*hub // the API servers
	gates []*env.Gate
}

// startUserClusters starts the API servers, unless an earlier row has: rows share them, because starting
// them takes longer than the measurements. Everything that a row leaves there is in namespaces that
// are deleted with the row.
func startUserClusters(b *testing.B) *userClusters {
	b.Helper()
	var options []env.Options
	for i := range servers {
		options = append(options, env.Options{Name: fmt.Sprintf("user-%02d", i), Audit: true})
	}
	f := &userClusters{}
	for some := range slices.Chunk(options, starting) {
		for _, cluster := range env.SharedAll(b, some...) {
			f.users = append(f.users, hubOf(b, cluster))
		}
	}
	for _, user := range f.users {
		await(b, user.view(b, namespaces, ""), 0, observe.Has("Terminating", "status", "phase"))
	}
	return f
}

// rowNamespace creates a namespace in API servers that rows share; it is deleted with the row.
func rowNamespace(b *testing.B, name string, users ...*hub) {
	b.Helper()
	for _, user := range users {
		user.namespace(b, name)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the row's own has ended
		defer cancel()
		for _, user := range users {
			require.NoError(b, user.client.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{}))
		}
	})
}

func remoteName(i int) string { return fmt.Sprintf("remote-%02d", i) }

// user returns the API server of the i-th cluster.
func (f *userClusters) user(i int) *hub { return f.users[i%servers] }

// join registers clusters with a hub, labelled with their names, and waits until they are Ready.
func (f *userClusters) join(b *testing.B, h *hub, size int) {
	b.Helper()
	for i := range size {
		gate, err := env.NewGate(f.user(i).Address())
		require.NoError(b, err)
		b.Cleanup(gate.Close)
		f.gates = append(f.gates, gate)
		config, err := f.user(i).AddUser(syncUser, "system:masters")
		require.NoError(b, err)
		kubeconfig, err := env.Kubeconfig(remoteName(i), env.Via(gate, config))
		require.NoError(b, err)
		h.register(b, remoteName(i), kubeconfig, map[string]any{"fleet": "all", "name": remoteName(i)})
	}
	await(b, h.view(b, clusters, system), size, observe.Ready)
}

// selecting returns the part of a spec that selects clusters.
func selecting(labels map[string]any) map[string]any {
	return map[string]any{"clusterSelector": map[string]any{"matchLabels": labels}}
}

// hang makes the first clusters accept connections but never answer.
func (f *userClusters) hang(b *testing.B, count int) {
	b.Helper()
	for _, gate := range f.gates[:count] {
		require.NoError(b, gate.Hang())
	}
}

func (f *userClusters) open(b *testing.B) {
	b.Helper()
	for _, gate := range f.gates {
		require.NoError(b, gate.Open())
	}
}
