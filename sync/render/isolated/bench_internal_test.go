package isolated

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// BenchmarkBuild compares a process that is kept with one that is started for the build.
func BenchmarkBuild(b *testing.B) {
	fsys := fstest.MapFS{
		"kustomization.yaml": {Data: []byte("resources: [a.yaml]\nnamePrefix: x-\n")},
		"a.yaml":             {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}
	for name, keeps := range map[string]bool{"kept": true, "started": false} {
		b.Run(name, func(b *testing.B) {
			builder := NewBuilder(Options{})
			for b.Loop() {
				_, _, err := builder.Build(b.Context(), fsys, ".")
				require.NoError(b, err)
				if !keeps {
					p := builder.take()
					p.kill()
					p.wait()
				}
			}
		})
	}
}
