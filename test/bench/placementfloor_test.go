package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/test/env"
)

// floorSpace is the namespace in which the bare program applies and reports.
const floorSpace = "floor"

// bareProgram applies the objects of all applications with 20 requests at a time, two to each API
// server, which it reaches as Waybill does. After each object it writes a status to an existing
// object on the hub. It knows the cluster of each application in advance.
type bareProgram struct {
	toHub   *floor
	toUsers []*floor
	objects [servers][]patch
	reports [servers][]patch
}

func (p *placement) newBareProgram(b *testing.B) *bareProgram {
	b.Helper()
	require.NoError(b, p.InstallCRDs(b.Context(), benchCRDs))
	rowNamespace(b, floorSpace, p.users...)
	p.namespace(b, floorSpace)
	bare := &bareProgram{toHub: newFloor(b, p.RESTConfig(), connections)}
	for i, user := range p.users {
		bare.toUsers = append(bare.toUsers, newFloor(b, env.Via(p.gates[i], user.RESTConfig()), connections/servers))
	}
	for i := range placed {
		patches := prepare(b, placedManifests(floorSpace, i))
		bare.objects[i%servers] = append(bare.objects[i%servers], patches...)
		for n := range patches {
			bare.reports[i%servers] = append(bare.reports[i%servers], patch{path: pathOf(reports, floorSpace, reportName(i, n)) + "/status"})
		}
	}
	require.NoError(b, parallel(placed*templates, func(i int) error {
		_, err := p.client.Resource(reports).Namespace(floorSpace).Create(b.Context(), report(i/templates, i%templates), metav1.CreateOptions{})
		return err
	}))
	return bare
}

func reportName(i, n int) string { return fmt.Sprintf("%s-%d", appName(i), n) }

func report(i, n int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": reports.GroupVersion().String(), "kind": "Report",
		"metadata": map[string]any{"name": reportName(i, n), "namespace": floorSpace},
	}}
}

// say makes the reports of a run differ from those of the previous run, because the API server does
// not write unchanged objects.
func (f *bareProgram) say(b *testing.B, run int) {
	b.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"run": run, "text": strings.Repeat("x", 512)}})
	require.NoError(b, err)
	for i := range f.reports {
		for n := range f.reports[i] {
			f.reports[i][n].body = body
		}
	}
}

// run returns how long it takes to apply and report everything.
func (f *bareProgram) run(b *testing.B) float64 {
	b.Helper()
	began := time.Now()
	var group errgroup.Group
	for i, client := range f.toHub.clients {
		at, part := i%servers, i/servers
		group.Go(func() error {
			user := f.toUsers[at]
			for n := part; n < len(f.objects[at]); n += len(user.clients) {
				if err := send(user.clients[part], user.applying, f.objects[at][n]); err != nil {
					return err
				}
				if err := send(client, f.toHub.merging, f.reports[at][n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
	return time.Since(began).Seconds()
}

// remove deletes the applied objects.
func (f *bareProgram) remove(b *testing.B) {
	b.Helper()
	for i, user := range f.toUsers {
		user.remove(b, f.objects[i])
	}
}
