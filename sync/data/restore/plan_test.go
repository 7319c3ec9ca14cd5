package restore_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
)

// S25, S26, S98, S99, S100, S102: the example of the document, from ns1 to ns2 under another name.
func TestMake_mongo(t *testing.T) {
	definitions := objects(t, "testdata/mongo.yaml")

	plan, err := restore.Make(definitions, restore.Options{
		Namespace: "ns2", Application: "mongo-clone", StorageClasses: []string{"standard"},
		Rules: []v1alpha1.ValueSubstitutionRule{
			{Type: v1alpha1.SubstitutionName, OldValue: "mongo", NewValue: "mongo-clone"},
			{Type: v1alpha1.SubstitutionLabel, Key: "app.kubernetes.io/name", OldValue: "mongo", NewValue: "mongo-clone"},
		},
	})
	require.NoError(t, err)

	var made []byte
	for _, o := range plan.All() {
		text, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		made = append(append(made, "---\n"...), text...)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("testdata/mongo.clone.yaml", made, 0o644))
	}
	want, err := os.ReadFile("testdata/mongo.clone.yaml")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(made))
	require.Len(t, plan.Claims, 2)
	assert.Equal(t, "data-mongo-0", plan.Claims[0].Source, "that is what its VolumeSnapshot is known by")
	assert.Equal(t, objects(t, "testdata/mongo.yaml"), definitions, "another clone starts from the same")
	assert.Positive(t, plan.Rules[0].Hits)
	assert.Positive(t, plan.Rules[1].Hits)
}

// objects reads a file of objects.
func objects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	var list []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); err != nil {
			require.ErrorContains(t, err, "EOF")
			return list
		}
		list = append(list, obj)
	}
}
