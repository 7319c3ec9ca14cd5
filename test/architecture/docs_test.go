package architecture

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// kind is one of ours, with its page in api/docs.
type kind struct {
	object any
	spec   any
}

var documented = map[string]kind{
	v1alpha1.GitSyncKind:                 {&v1alpha1.GitSync{}, v1alpha1.GitSyncSpec{}},
	v1alpha1.KubernetesClusterKind:       {&v1alpha1.KubernetesCluster{}, v1alpha1.KubernetesClusterSpec{}},
	v1alpha1.ApplicationDefinitionKind:   {&v1alpha1.ApplicationDefinition{}, v1alpha1.ApplicationDefinitionSpec{}},
	v1alpha1.ApplicationInstallationKind: {&v1alpha1.ApplicationInstallation{}, v1alpha1.ApplicationInstallationSpec{}},
	v1alpha1.ApplicationKind:             {&v1alpha1.Application{}, v1alpha1.ApplicationSpec{}},

	v1alpha1.KubernetesApplicationKind:         {&v1alpha1.KubernetesApplication{}, v1alpha1.KubernetesApplicationSpec{}},
	v1alpha1.KubernetesApplicationResourceKind: {&v1alpha1.KubernetesApplicationResource{}, v1alpha1.KubernetesApplicationResourceSpec{}},

	v1alpha1.HookActionKind:    {&v1alpha1.HookAction{}, v1alpha1.HookActionSpec{}},
	v1alpha1.ExecutionHookKind: {&v1alpha1.ExecutionHook{}, v1alpha1.ExecutionHookSpec{}},

	v1alpha1.StatefulApplicationKind:        {&v1alpha1.StatefulApplication{}, v1alpha1.StatefulApplicationSpec{}},
	v1alpha1.ApplicationSnapshotKind:        {&v1alpha1.ApplicationSnapshot{}, v1alpha1.ApplicationSnapshotSpec{}},
	v1alpha1.ApplicationSnapshotContentKind: {&v1alpha1.ApplicationSnapshotContent{}, v1alpha1.ApplicationSnapshotContentSpec{}},
	v1alpha1.ApplicationRollbackKind:        {&v1alpha1.ApplicationRollback{}, v1alpha1.ApplicationRollbackSpec{}},

	// Classes have their fields at the top, as those of Kubernetes do.
	v1alpha1.StatefulApplicationClassKind: {&v1alpha1.StatefulApplicationClass{}, v1alpha1.StatefulApplicationClass{}},
	v1alpha1.ApplicationSnapshotClassKind: {&v1alpha1.ApplicationSnapshotClass{}, v1alpha1.ApplicationSnapshotClass{}},
}

func page(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "api", "docs", strings.ToLower(name)+".md"))
	require.NoError(t, err)
	return string(content)
}

func TestDocs_everyFieldOfASpecHasAHeading(t *testing.T) {
	for name, k := range documented {
		_, spec, found := strings.Cut(page(t, name), "\n## Writing a spec\n")
		require.True(t, found, name)
		spec, _, _ = strings.Cut(spec, "\n## ")
		for field := range reflect.TypeOf(k.spec).Fields() {
			if field.Anonymous {
				continue // what all objects have
			}
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			assert.Regexp(t, `(?m)^### (.*\b)?`+tag+`\b`, spec, "%s: spec.%s has no heading", name, tag)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

func TestDocs_examplesAreOfTheKind(t *testing.T) {
	for name, k := range documented {
		found := 0
		for _, block := range yamlBlock.FindAllStringSubmatch(page(t, name), -1) {
			if !strings.Contains(block[1], "\nkind: "+name+"\n") {
				continue
			}
			found++
			object := reflect.New(reflect.TypeOf(k.object).Elem()).Interface()
			assert.NoError(t, yaml.UnmarshalStrict([]byte(block[1]), object), "%s:\n%s", name, block[1])
		}
		assert.Positive(t, found, name)
	}
}
