package release

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

type nowhere struct{ host string }

func (n *nowhere) Config() *rest.Config                          { return &rest.Config{Host: n.host} }
func (n *nowhere) Mapper() meta.RESTMapper                       { return nil }
func (n *nowhere) Discovery() discovery.CachedDiscoveryInterface { return nil }

// A release has one action at a time.
func TestRun_oneActionAtATime(t *testing.T) {
	e := NewEngine()
	web := func(target Target) job {
		return job{engine: e, target: target, desired: Desired{Identity: Identity{Name: "web"}}, clock: &clock{}}
	}
	nothing := func(context.Context) (Result, error) { return Result{}, nil }
	here := &nowhere{"a"}
	_, err := run(t.Context(), web(here), func(ctx context.Context) (Result, error) {
		_, err := run(ctx, web(here), nothing)
		assert.Equal(t, ReasonBusy, ReasonOf(err))
		_, err = run(ctx, web(&nowhere{"b"}), nothing)
		require.NoError(t, err, "the same name in another cluster is another release")
		return Result{}, nil
	})
	require.NoError(t, err)
	_, err = run(t.Context(), web(here), nothing)
	require.NoError(t, err)
}

// What has a time of its own does not count for that of the action.
func TestClock_standsStill(t *testing.T) {
	c := &clock{}
	ctx, stop := c.start(t.Context(), time.Hour)
	defer stop()
	c.since = c.since.Add(-50 * time.Minute)
	c.during(func() { c.since = c.since.Add(-time.Hour) })
	require.NoError(t, ctx.Err())
	assert.InDelta(t, 10, c.left.Minutes(), 1, "of the hour, fifty minutes were the action's own")

	c.since = c.since.Add(-20 * time.Minute)
	c.during(func() {})
	<-ctx.Done()
	assert.ErrorContains(t, context.Cause(ctx), "action took longer than 1h0m0s")
	assert.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
}

func TestRun_survivesAPanic(t *testing.T) {
	_, err := run(t.Context(), job{engine: NewEngine(), target: &nowhere{}, clock: &clock{}}, func(context.Context) (Result, error) {
		var none *session
		none.close()
		return Result{}, nil
	})
	assert.Equal(t, ReasonRender, ReasonOf(err))
	assert.Contains(t, err.Error(), "helm failed unexpectedly")
}

func TestInputOf_belongsToItsRevision(t *testing.T) {
	id := Identity{Name: "web"}
	label := id.recordLabels(7, "abc")[inputLabel]
	assert.Equal(t, "abc", inputOf(7, label))
	assert.Empty(t, inputOf(8, label), "labels are inherited")
	assert.Empty(t, inputOf(7, ""))
	assert.Empty(t, inputOf(7, "7"))
}

func TestJoin_isOneLineOfAFew(t *testing.T) {
	assert.NoError(t, join([]error{nil, nil}))
	one := errors.New("one")
	assert.Equal(t, one, join([]error{nil, one}))
	many := join([]error{one, errors.New("2"), errors.New("3"), errors.New("4"), errors.New("5"), errors.New("6"), context.Canceled})
	assert.Equal(t, "one; 2; 3; 4; 5; and 2 more", many.Error())
	assert.ErrorIs(t, many, context.Canceled)
}

func TestDiffering(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason string
		a, b   object
		want   []string
	}{
		"Same":   {"nothing", object{"a": []any{1, object{"b": 2}}}, object{"a": []any{1, object{"b": 2}}}, nil},
		"Value":  {"a field", object{"spec": object{"replicas": 1}}, object{"spec": object{"replicas": 2}}, []string{"spec.replicas"}},
		"Gone":   {"a field that is gone, one that is new", object{"a": 1}, object{"b": 1}, []string{"a", "b"}},
		"Nested": {"inside a list", object{"c": []any{object{"image": "x"}}}, object{"c": []any{object{"image": "y"}}}, []string{"c[0].image"}},
		"Length": {"lists of other lengths as a whole", object{"c": []any{1}}, object{"c": []any{1, 2}}, []string{"c"}},
		"Dots":   {"keys with dots", object{"labels": object{"a.b/c": "x"}}, object{"labels": object{}}, []string{`labels["a.b/c"]`}},
		"Type":   {"another type", object{"a": object{}}, object{"a": 1}, []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, differing("", tc.a, tc.b, nil), tc.reason)
		})
	}
}

// C53: what others set between two reads is in no patch of ours.
func TestTouched_isWhatAPatchNames(t *testing.T) {
	type object = map[string]any
	live := object{
		"metadata": object{"annotations": object{"ours": "x", "deployment.kubernetes.io/revision": "1"}},
		"spec":     object{"replicas": 2, "paused": true, "strategy": object{"type": "Recreate", "rollingUpdate": object{}}, "containers": []any{object{"name": "a"}}},
	}
	cases := map[string]struct {
		reason      string
		patch, want object
	}{
		"Field":    {"a field, and nothing beside it", object{"spec": object{"replicas": 1}}, object{"spec": object{"replicas": 2}}},
		"Removed":  {"what is taken out", object{"spec": object{"paused": nil}}, object{"spec": object{"paused": true}}},
		"Beside":   {"an annotation that others write is not ours", object{"metadata": object{"annotations": object{"ours": "y"}}}, object{"metadata": object{"annotations": object{"ours": "x"}}}},
		"New":      {"what is not there", object{"spec": object{"other": 1}}, object{"spec": object{}}},
		"List":     {"elements are at other indexes in a patch", object{"spec": object{"containers": []any{object{"name": "b"}}}}, object{"spec": object{"containers": []any{object{"name": "a"}}}}},
		"Order":    {"only the order differs", object{"spec": object{"$setElementOrder/containers": []any{}}}, object{"spec": object{"containers": []any{object{"name": "a"}}}}},
		"Retained": {"the rest of the map goes", object{"spec": object{"strategy": object{"$retainKeys": []any{"type"}}}}, object{"spec": object{"strategy": object{"type": "Recreate", "rollingUpdate": object{}}}}},
		"Replaced": {"a whole map", object{"metadata": object{"$patch": "replace"}}, object{"metadata": live["metadata"]}},
		"Nothing":  {"an empty patch", object{}, object{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, touched(live, tc.patch), tc.reason)
		})
	}
}
