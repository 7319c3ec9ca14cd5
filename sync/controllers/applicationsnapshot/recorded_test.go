package applicationsnapshot_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// S95: a process may end at any line, because the status announces each kind of act before the first of it; and what
// the watch knows of VolumeSnapshots is not read.
func TestSnapshot_recordsBeforeItActs(t *testing.T) {
	for name, test := range map[string]struct {
		before func(w *world)
		course string
	}{
		"with hooks": {
			before: func(*world) {},
			course: "status secrets status executionhooks status volumesnapshots status executionhooks status applicationsnapshotcontents status",
		},
		"scaled to zero": {
			before: func(w *world) {
				w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
			},
			course: "status secrets status statefulsets statefulsets/scale status volumesnapshots status statefulsets/scale statefulsets status " +
				"applicationsnapshotcontents status",
		},
		"at rest already": {
			before: func(w *world) { w.class.PreHooks, w.class.PostHooks = nil, nil },
			course: "status secrets status volumesnapshots status applicationsnapshotcontents status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data", "more")
			test.before(w)
			mark, err := w.cluster.AuditMark(t.Context())
			require.NoError(t, err)
			s := hub.AwaitReady(w.World, w.take())
			all, err := w.cluster.Requests(t.Context(), mark, env.ByUser(hub.Identity), env.Accepted, func(r env.Request) bool {
				return r.Namespace == w.Namespace || strings.Contains(r.Name, string(s.UID))
			})
			require.NoError(t, err)
			assert.Equal(t, test.course, course(all))
			assert.False(t, slices.ContainsFunc(all, func(r env.Request) bool { return r.Verb == "list" && r.Resource == "volumesnapshots" }))
		})
	}
}

// course returns the writes of the status of a snapshot, and what was done between them, in their order and each once.
func course(all []env.Request) string {
	slices.SortFunc(all, func(a, b env.Request) int { return a.Time.Compare(b.Time) })
	var steps []string
	for _, r := range all {
		step := r.Resource
		switch {
		case !env.Writes(r) || r.Resource == "events":
			continue
		case r.Resource == "applicationsnapshots" && r.Subresource == "status":
			step = "status"
		case r.Subresource == "scale":
			step += "/scale"
		case r.Subresource != "" || r.Resource == "applicationsnapshots":
			continue
		}
		steps = append(steps, step)
	}
	return strings.Join(slices.Compact(steps), " ")
}
