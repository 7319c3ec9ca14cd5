package volumes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// C63: a volume that is cut again within the second of the first time is told from it.
func TestIsAnother_tellsContentsOfOneSecond(t *testing.T) {
	at := time.Date(2026, 11, 3, 9, 12, 40, 500e6, time.UTC)
	cut := func(uid types.UID, at time.Time) State { return State{UID: uid, CutAt: ptr.To(metav1.NewTime(at))} }
	of := cut("snapshot", at.Truncate(time.Second))
	for name, test := range map[string]struct {
		first   types.UID
		content State
		want    bool
	}{
		"the first one":                      {first: "one", content: cut("one", at)},
		"another one of the second":          {first: "one", content: cut("two", at), want: true},
		"another one, later":                 {first: "one", content: cut("two", at.Add(time.Second)), want: true},
		"it is gone":                         {first: "one", want: true},
		"it is replaced, and not cut yet":    {first: "one", content: State{UID: "two"}, want: true},
		"after a restart":                    {content: cut("one", at)},
		"after a restart, another one later": {content: cut("two", at.Add(time.Second)), want: true},
	} {
		assert.Equal(t, test.want, isAnother(of, test.first, test.content), name)
	}
}
