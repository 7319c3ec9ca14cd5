package release_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/deliver/release"
)

// forgetful cannot say once which kinds there are when it is asked while a condition holds, like a
// cluster whose discovery does not answer for a moment.
type forgetful struct {
	*target
	while  func() bool
	failed atomic.Bool
}

func (f *forgetful) Mapper() meta.RESTMapper { return forgetfulMapper{f.target.mapper, f} }

type forgetfulMapper struct {
	meta.RESTMapper
	target *forgetful
}

func (m forgetfulMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.target.while() && m.target.failed.CompareAndSwap(false, true) {
		return nil, errors.New("discovery does not answer")
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// deployed reports whether that record says that its revision is deployed.
func (w *world) deployed(record string) bool {
	found, err := w.client.CoreV1().Secrets(w.namespace).Get(w.Context(), record, metav1.GetOptions{})
	return err == nil && found.Labels["status"] == "deployed"
}

// K47: atomic is about what failed. A release that works does not go because its objects could not be listed.
func TestEnsure_atomicUndoesNothingThatIsOnlyNotDescribed(t *testing.T) {
	cases := map[string]struct {
		reason string
		before []values
		want   []string
		fails  bool
	}{
		"Kept":      {"nothing has changed", []values{{"greeting": "one"}, {"greeting": "two"}}, []string{"1 superseded", "2 deployed"}, true},
		"Upgraded":  {"it was just upgraded, and what it consists of is known", []values{{"greeting": "one"}}, []string{"1 superseded", "2 deployed"}, false},
		"Installed": {"it was just installed, and what it consists of is known", nil, []string{"1 deployed"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, v := range tc.before {
				w.ensure(w.desired("web", v))
			}
			d := w.desired("web", values{"greeting": "two"})
			d.Options.Atomic = true
			record := "sh.helm.release.v1.web.v" + tc.want[len(tc.want)-1][:1]
			result, err := w.engine.Ensure(t.Context(), &forgetful{target: w.target, while: func() bool { return w.deployed(record) }}, d)
			if tc.fails {
				require.ErrorContains(t, err, "discovery does not answer", tc.reason)
			} else {
				require.NoError(t, err, tc.reason)
				assert.NotEmpty(t, result.Objects, tc.reason)
			}
			w.known["web"] = result.Release
			assert.Equal(t, tc.want, w.revisions("web"), tc.reason)
			assert.Equal(t, "two", w.greeting())
			assert.Equal(t, release.ActionNone, w.ensure(d).Action, "it is as it is wanted")
		})
	}
}
