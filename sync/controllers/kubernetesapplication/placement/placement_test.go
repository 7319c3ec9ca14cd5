package placement_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
)

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// candidate is one that fits, changed.
func candidate(name string, change func(*placement.Candidate)) placement.Candidate {
	c := placement.Candidate{
		Name:   name,
		Labels: labels.Set{"region": "north", "tier": "prod"},
		Serves: func(schema.GroupVersionKind) error { return nil },
	}
	if change != nil {
		change(&c)
	}
	return c
}

func workload(t *testing.T, selector *metav1.LabelSelector) placement.Workload {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return placement.Workload{Selector: s, Kinds: []schema.GroupVersionKind{deployment}}
}

var north = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}}

// W7, W36, C57
func TestFit_oneObjectionIsEnough(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(*placement.Candidate)
		want    placement.Reason
		message string
	}{
		"fits":   {"nothing is against it", nil, "", ""},
		"labels": {"W7", func(c *placement.Candidate) { c.Labels["region"] = "south" }, placement.NotSelected, "do not match"},
		"paused": {"nothing may be done there", func(c *placement.Candidate) { c.Paused = true }, placement.Paused, "paused"},
		"deleting": {"it is about to go", func(c *placement.Candidate) { c.Deleting, c.Paused = true, true },
			placement.Deleting, "deleted"},
		"unreachable": {"it could not be submitted", func(c *placement.Candidate) {
			c.Unreachable = errors.New("connection refused")
			c.Serves = nil // is not asked
		}, placement.Unreachable, "connection refused"},
		"kind": {"C57", func(c *placement.Candidate) {
			c.Serves = func(gvk schema.GroupVersionKind) error { return errors.New("not installed") }
		}, placement.KindNotServed, "it does not serve Deployment in apps/v1: not installed"},
		"unanswered": {"nobody knows", func(c *placement.Candidate) {
			c.Serves = func(schema.GroupVersionKind) error { return fmt.Errorf("%w in time", placement.ErrUnanswered) }
		}, placement.Unanswered, "it does not say whether it serves Deployment in apps/v1: no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			fitting, err := placement.DefaultFilters().Fit(workload(t, north), []placement.Candidate{candidate("berlin", tc.change)})
			if tc.want == "" {
				require.NoError(t, err)
				assert.Len(t, fitting, 1)
				return
			}
			var fit *placement.FitError
			require.ErrorAs(t, err, &fit, tc.reason)
			require.Len(t, fit.Clusters, 1)
			assert.Equal(t, tc.want, fit.Clusters[0].Reason, tc.reason)
			assert.True(t, fit.Has(tc.want))
			assert.Contains(t, fit.Clusters[0].Message, tc.message)
		})
	}
}

// A cluster that is slow to answer holds up only itself.
func TestFit_asksClustersSideBySide(t *testing.T) {
	var asked sync.WaitGroup
	var candidates []placement.Candidate
	for _, name := range []string{"berlin", "oslo", "rome"} {
		asked.Add(1)
		candidates = append(candidates, candidate(name, func(c *placement.Candidate) {
			c.Serves = func(schema.GroupVersionKind) error {
				asked.Done()
				asked.Wait() // until all are asked
				return nil
			}
		}))
	}
	fitting, err := placement.DefaultFilters().Fit(workload(t, north), candidates)
	require.NoError(t, err)
	assert.Len(t, fitting, 3)
	assert.Equal(t, "berlin", fitting[0].Name, "in their order")
}

// W7: matchLabels and matchExpressions.
func TestFit_selectors(t *testing.T) {
	all := []placement.Candidate{
		candidate("berlin", nil),
		candidate("oslo", func(c *placement.Candidate) { c.Labels = labels.Set{"region": "north"} }),
		candidate("rome", func(c *placement.Candidate) { c.Labels = labels.Set{"region": "south", "tier": "prod"} }),
		candidate("bare", func(c *placement.Candidate) { c.Labels = nil }),
	}
	for reason, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"{} is any":      {&metav1.LabelSelector{}, []string{"berlin", "oslo", "rome", "bare"}},
		"labels":         {north, []string{"berlin", "oslo"}},
		"In":             {expression("region", metav1.LabelSelectorOpIn, "south", "west"), []string{"rome"}},
		"NotIn":          {expression("region", metav1.LabelSelectorOpNotIn, "south"), []string{"berlin", "oslo", "bare"}},
		"Exists":         {expression("tier", metav1.LabelSelectorOpExists), []string{"berlin", "rome"}},
		"DoesNotExist":   {expression("tier", metav1.LabelSelectorOpDoesNotExist), []string{"oslo", "bare"}},
		"all must match": {&metav1.LabelSelector{MatchLabels: north.MatchLabels, MatchExpressions: expression("tier", metav1.LabelSelectorOpExists).MatchExpressions}, []string{"berlin"}},
	} {
		fitting, err := placement.DefaultFilters().Fit(workload(t, tc.selector), all)
		require.NoError(t, err, reason)
		var got []string
		for _, c := range fitting {
			got = append(got, c.Name)
		}
		assert.Equal(t, tc.want, got, reason)
	}
}

func expression(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

// W36: what is said is for people, the same each time, and bounded.
func TestFitError_saysOfEachWhyNot(t *testing.T) {
	south := func(c *placement.Candidate) { c.Labels = labels.Set{"region": "south"} }
	paused := func(c *placement.Candidate) { c.Paused = true }
	var many []placement.Candidate
	for i := range 25 {
		many = append(many, candidate(fmt.Sprintf("c%02d", i), paused))
	}
	for reason, tc := range map[string]struct {
		candidates []placement.Candidate
		want       string
	}{
		"none":         {nil, "there is no cluster"},
		"none matches": {[]placement.Candidate{candidate("rome", south), candidate("bari", south)}, "none of 2 clusters has labels that match the selector"},
		"sorted": {[]placement.Candidate{candidate("oslo", paused), candidate("rome", south), candidate("berlin", func(c *placement.Candidate) { c.Deleting = true })},
			"no cluster fits: cluster berlin: it is being deleted; cluster oslo: it is paused; labels of 1 other do not match the selector"},
	} {
		_, err := placement.DefaultFilters().Fit(workload(t, north), tc.candidates)
		assert.EqualError(t, err, tc.want, reason)
	}
	_, err := placement.DefaultFilters().Fit(workload(t, north), many)
	assert.ErrorContains(t, err, "cluster c19: it is paused; and 5 more")
	assert.NotContains(t, err.Error(), "c20")
}

// W3, W36: one cluster, that in which least runs.
func TestSelect_spreads(t *testing.T) {
	w := workload(t, north)
	placed := map[string]int{}
	for range 30 {
		var candidates []placement.Candidate
		for _, name := range []string{"oslo", "berlin", "rome"} {
			candidates = append(candidates, candidate(name, func(c *placement.Candidate) { c.Placed = placed[name] }))
		}
		placed[placement.DefaultScores().Select(w, candidates).Name]++
	}
	assert.Equal(t, map[string]int{"berlin": 10, "oslo": 10, "rome": 10}, placed)
}

// The same findings lead to the same cluster, whatever order they come in.
func TestSelect_isStable(t *testing.T) {
	w := workload(t, north)
	a, b := candidate("a", nil), candidate("b", nil)
	for _, candidates := range [][]placement.Candidate{{a, b}, {b, a}} {
		assert.Equal(t, "a", placement.DefaultScores().Select(w, candidates).Name)
	}
	b.Placed, a.Placed = 1, 2
	assert.Equal(t, "b", placement.DefaultScores().Select(w, []placement.Candidate{a, b}).Name)
	earlier := placement.Scores{func(_ placement.Workload, c placement.Candidate) int { return len(c.Name) }, placement.Spread}
	long := candidate("longer", func(c *placement.Candidate) { c.Placed = 9 })
	assert.Equal(t, "longer", earlier.Select(w, []placement.Candidate{a, long, b}).Name, "an earlier score counts first")
}
