package applicationdefinition

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// K6
func TestSummarize_namesTheNewestVersionsFirst(t *testing.T) {
	cases := map[string]struct {
		reason     string
		versions   []string
		deprecated []string
		want       string
	}{
		"One":        {reason: "a version is named as it is written", versions: []string{"v1.0"}, want: "v1.0"},
		"Order":      {reason: "by precedence, not by text", versions: []string{"1.9.0", "1.10.0", "1.10.0-rc.1"}, want: "1.10.0, 1.10.0-rc.1, 1.9.0"},
		"Words":      {reason: "what has no precedence keeps its order, behind", versions: []string{"stable", "1.0.0", "edge"}, want: "1.0.0, stable, edge"},
		"Many":       {reason: "a table has little room", versions: []string{"1", "2", "3", "4", "5", "6", "7"}, want: "7, 6, 5, 4, 3 and 2 more"},
		"Deprecated": {reason: "nobody should start with those", versions: []string{"2"}, deprecated: []string{"1"}, want: "2"},
		"AllOld":     {reason: "but better those than none", deprecated: []string{"1", "2"}, want: "2, 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var versions []v1alpha1.ApplicationVersion
			for _, v := range tc.deprecated {
				versions = append(versions, v1alpha1.ApplicationVersion{Version: v, Deprecated: true})
			}
			for _, v := range tc.versions {
				versions = append(versions, v1alpha1.ApplicationVersion{Version: v})
			}
			assert.Equal(t, tc.want, summarize(versions), tc.reason)
		})
	}
}
