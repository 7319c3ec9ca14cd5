package applicationsnapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

// C63: what is remembered of an application while it is quiesced is what it takes to release it, however large it is.
func TestOutline_isWhatIsNeeded(t *testing.T) {
	bulk := strings.Repeat("x", 1<<20)
	object := func(api, kind, name string, spec map[string]any) contents.Object {
		return contents.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": api, "kind": kind, "spec": spec,
			"metadata": map[string]any{"namespace": "ns", "name": name, "annotations": map[string]any{"bulk": bulk}},
		}}}
	}
	now := metav1.Now()
	pod := func(name string, edit func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1", Labels: map[string]string{"role": "leader"}, Annotations: map[string]string{"bulk": bulk}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "main", Image: "db", Env: []corev1.EnvVar{{Name: "BULK", Value: bulk}}}, {Name: "side", Image: "side"},
			}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 2}, {Name: "side", RestartCount: 5}}},
		}
		edit(&p)
		return p
	}
	found := &contents.Contents{
		Application: object("apps.waybill.dev/v1alpha1", "Application", "db", nil).Unstructured,
		Objects: []contents.Object{
			object("v1", "ConfigMap", "settings", nil), object("apps/v1", "StatefulSet", "db", map[string]any{"replicas": int64(3)}),
			object("apps/v1", "Deployment", "off", map[string]any{"replicas": int64(0)}), object("apps/v1", "Deployment", "web", map[string]any{}),
		},
		Claims:       []contents.Claim{{Object: object("v1", "PersistentVolumeClaim", "data", nil)}},
		Installation: object("apps.waybill.dev/v1alpha1", v1alpha1.ApplicationInstallationKind, "db", nil).Unstructured,
		Pods: []corev1.Pod{
			pod("db-0", func(*corev1.Pod) {}), pod("ending", func(p *corev1.Pod) { p.DeletionTimestamp = &now }),
			pod("pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), pod("follower", func(p *corev1.Pod) { p.Labels = nil }),
		},
	}
	kept := outlineOf(found)
	assert.Equal(t, scale.Workloads(found), scale.Workloads(kept))
	assert.Len(t, scale.Workloads(kept), 2)
	assert.Equal(t, held(found, scale.Workloads(found)), held(kept, scale.Workloads(kept)))
	for _, hook := range []v1alpha1.HookSpec{
		{Name: "all"}, {Name: "side", Container: "side"}, {Name: "none", Container: "none"},
		{Name: "leader", PodFilter: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}},
	} {
		want, err := targets(found.Pods, hook)
		require.NoError(t, err)
		got, err := targets(kept.Pods, hook)
		require.NoError(t, err)
		assert.Equal(t, want, got, hook.Name)
	}
	text, err := json.Marshal(kept)
	require.NoError(t, err)
	assert.Less(t, len(text), 16<<10, "no bulk is kept")
}
