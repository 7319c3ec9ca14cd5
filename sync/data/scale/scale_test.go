package scale_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

// C63: what is scaled to zero already stays there afterwards, and what cannot be scaled is left alone.
func TestWorkloads_areThoseThatRun(t *testing.T) {
	object := func(group, kind, name string, spec map[string]any) contents.Object {
		return contents.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name}, "spec": spec,
		}}}
	}
	workload := func(kind, name string, replicas int32) v1alpha1.ScaledWorkload {
		return v1alpha1.ScaledWorkload{
			ObjectReference: v1alpha1.ObjectReference{Group: "apps", Kind: kind, Namespace: "ns", Name: name}, Replicas: replicas,
		}
	}
	assert.Equal(t, []v1alpha1.ScaledWorkload{workload("Deployment", "web", 3), workload("StatefulSet", "db", 1)},
		scale.Workloads(&contents.Contents{Objects: []contents.Object{
			object("apps", "Deployment", "web", map[string]any{"replicas": int64(3)}),
			object("apps", "Deployment", "off", map[string]any{"replicas": int64(0)}),
			object("apps", "DaemonSet", "agent", map[string]any{}),
			object("apps", "StatefulSet", "db", map[string]any{}),
			object("example.com", "Deployment", "other", map[string]any{"replicas": int64(3)}),
		}}))
}
