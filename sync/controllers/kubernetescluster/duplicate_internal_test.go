package kubernetescluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// C38: a KubernetesCluster whose claim has changed since it was decided about is decided about again:
// otherwise the former claim is proved, and the latter waited for, without end.
func TestOtherwise(t *testing.T) {
	first := types.NamespacedName{Namespace: "team", Name: "first"}
	claim := func(input string) *unproved {
		return &unproved{claimant: types.NamespacedName{Namespace: "team", Name: "second"}, incumbent: first, input: input}
	}
	cases := map[string]struct {
		reason  string
		is, was error
		want    bool
	}{
		"Same":     {"nothing has changed", checking([]*unproved{claim("one")}), checking([]*unproved{claim("one")}), false},
		"Claim":    {"the words are the same, and the claim is another", checking([]*unproved{claim("two")}), checking([]*unproved{claim("one")}), true},
		"Further":  {"there is one claim more", checking([]*unproved{claim("one"), claim("two")}), checking([]*unproved{claim("one")}), true},
		"Decided":  {"nothing is in its way any more", nil, checking([]*unproved{claim("one")}), true},
		"Yields":   {"it comes after another one now", &yieldError{first: first}, nil, true},
		"Undenied": {"it may be used, as before", nil, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, otherwise(c.is, c.was), c.reason)
		})
	}
}
