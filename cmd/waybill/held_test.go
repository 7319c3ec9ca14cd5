package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// wanted identifies a manifest with the marks of its owner, as a delivery does.
func wanted(t *testing.T, owner apply.Owner, text string) string {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetLabels(map[string]string{v1alpha1.OwnerHashLabel: owner.Hash()})
	object.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: owner.String()})
	body, err := json.Marshal(object.Object)
	require.NoError(t, err)
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// C65: what a rollback holds is said, and is not said to be changed, unless git wants something else.
func TestHeld_isSaidByTreeAndDiff(t *testing.T) {
	cluster := hub(t)
	h, namespace := clientOf(t, cluster), cluster.Namespace(t)
	gs := gitSync(namespace, "team-a")
	owner := apply.Owner{HubID: "id", Kind: v1alpha1.GitSyncKind, Namespace: namespace, Name: "team-a"}
	delivered(t, cluster, owner, configMapYAML(namespace, "web", "old"), configMapYAML(namespace, "side", "old"))
	gs.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
		{ID: namespace + "_web__ConfigMap", Version: "v1"}, {ID: namespace + "_side__ConfigMap", Version: "v1"},
	}}
	gs.Status.Held = []v1alpha1.Hold{{
		ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "web"}, Rollback: "back",
		Since: metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)), Wanted: wanted(t, owner, configMapYAML(namespace, "web", "new")),
	}}
	create(t, h, gs)
	held := "held by ApplicationRollback " + namespace + "/back since 2026-08-01T12:00:00Z"

	got := waybill(t, cluster, "tree", "team-a", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, held)

	both := func(web string) string {
		return write(t, map[string]string{"web.yaml": configMapYAML(namespace, "web", web), "side.yaml": configMapYAML(namespace, "side", "new")})
	}
	got = waybill(t, cluster, "diff", "gitsync/team-a", "-n", namespace, "--system-namespace", namespace, "--path", both("new"))
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, held)
	assert.Contains(t, got.errOut, "0 created, 1 changed, 0 deleted, 0 refused, 1 as they are")

	got = waybill(t, cluster, "diff", "gitsync/team-a", "-n", namespace, "--system-namespace", namespace, "--path", both("newer"))
	assert.NotContains(t, got.out, held)
	assert.Contains(t, got.errOut, "0 created, 2 changed, 0 deleted, 0 refused, 0 as they are")
}

// C65: what a chart has put into another namespace, and is held there, is said in the tree of the installation.
func TestHeld_elsewhereIsSaidByTree(t *testing.T) {
	cluster := hub(t)
	h, namespace, target := clientOf(t, cluster), cluster.Namespace(t), cluster.Namespace(t)
	since := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	held := func(name, by string) v1alpha1.Hold {
		return v1alpha1.Hold{
			ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: target, Name: name}, Rollback: by, Since: since, Wanted: "revision 2",
		}
	}
	inst := installation(namespace, "shop", "shop", "1.0.0")
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: target}
	inst.Status.Inventory = &v1alpha1.Inventory{}
	for _, name := range []string{"web", "cold", "side"} {
		create(t, h, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: name}})
		inst.Status.Inventory.Entries = append(inst.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: target + "_" + name + "__ConfigMap", Version: "v1"})
	}
	inst.Status.Held = []v1alpha1.Hold{held("cold", "snapshot:daily"), held("web", "back")}
	create(t, h, inst)

	got := waybill(t, cluster, "tree", "installation/shop", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "held by ApplicationRollback "+target+"/back since 2026-08-01T12:00:00Z")
	assert.Contains(t, got.out, "held by ApplicationSnapshot "+target+"/daily since 2026-08-01T12:00:00Z")
	assert.Equal(t, 2, strings.Count(got.out, "held by"))
}
