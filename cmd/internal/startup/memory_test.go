package startup

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryLimit_isThatOfTheContainer(t *testing.T) {
	const (
		mib    = 1 << 20
		own    = "proc/self/cgroup"
		v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	)
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		beside int64
		want   int64
	}{
		"no cgroups":     {"another system", nil, 0, 0},
		"version 2":      {"a tenth is left for what the garbage collector does not see", map[string]string{own: "0::/\n", v2: "268435456\n"}, 0, 241591905},
		"version 1":      {"older nodes", map[string]string{own: "4:memory:/kubepods\n", v1: "268435456\n"}, 0, 241591905},
		"no limit":       {"version 2 says so", map[string]string{own: "0::/\n", v2: "max\n"}, 0, 0},
		"no limit in v1": {"the largest page-aligned number", map[string]string{v1: "9223372036854771712\n"}, 0, 0},
		"not a number":   {"nothing is guessed", map[string]string{v2: "a lot\n"}, 0, 0},
		"a service":      {"outside of a container, its own group has the limit", map[string]string{own: "0::/system.slice/waybill\n", "sys/fs/cgroup/system.slice/waybill/memory.max": "104857600\n", v2: "max\n"}, 0, 94371840},
		"host path":      {"the container does not see the path of its group", map[string]string{own: "0::/kubepods/pod1\n", v2: "104857600\n"}, 0, 94371840},
		"children":       {"what they use is not there for the process", map[string]string{v2: "1610612736\n"}, 768 * mib, 724775724},
		"many children":  {"a quarter is for the process in any case", map[string]string{v2: "1610612736\n"}, 1536 * mib, 362387862},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range tc.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o600))
			}
			assert.Equal(t, tc.want, memoryLimit(root, tc.beside), tc.reason)
		})
	}
}

func TestLimitMemory_leavesWhatIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Setenv("GOMEMLIMIT", "1GiB")
	assert.Zero(t, LimitMemory(0))
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}
