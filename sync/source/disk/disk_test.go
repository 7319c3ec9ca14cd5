package disk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/source/disk"
)

func TestDivide(t *testing.T) {
	const gi = 1 << 30
	for reason, tc := range map[string]struct{ bytes, mirrors, charts int64 }{
		"charts take half a Gi, and an eighth is spare": {8 * gi, 6*gi + gi/2, gi / 2},
		"a small folder holds both, too":                {gi / 2, gi/2 - gi/16 - gi/8, gi / 8},
	} {
		mirrors, charts := disk.Divide(tc.bytes)
		assert.Equal(t, tc.mirrors, mirrors.StoreBytes, reason)
		assert.Equal(t, tc.charts, charts.DiskBytes, reason)
	}
}
