package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// samples are the values of one figure in several runs.
type samples []float64

// since adds the seconds that have passed since t.
func (s *samples) since(t time.Time) { *s = append(*s, time.Since(t).Seconds()) }

func (s *samples) add(v float64) { *s = append(*s, v) }

func (s samples) median() float64 { return s.percentile(50) }

// percentile returns the smallest value that p of 100 values do not exceed.
func (s samples) percentile(p int) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func (s samples) max() float64 { return s.percentile(100) }

func TestSamples_percentile(t *testing.T) {
	var helm100 samples
	for i := range 100 {
		helm100.add(float64(100 - i))
	}
	assert.InDelta(t, 50, helm100.median(), 0)
	assert.InDelta(t, 99, helm100.percentile(99), 0)
	assert.InDelta(t, 100, helm100.max(), 0)
	assert.InDelta(t, 7, samples{9, 7, 3}.median(), 0)
	assert.InDelta(t, 0, samples(nil).median(), 0)
}
