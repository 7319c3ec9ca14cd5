package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// statefulDatabase returns a StatefulSet with a volume, a component of an Application that selects on label app.
func statefulDatabase(namespace, name string) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	container := corev1.Container{Name: name, Image: "example.com/" + name, EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name + "-lost"}}},
	}}
	return belonging(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	}, name)
}

// S85: what belongs to an application is listed with its reasons and the rights of the user, and nothing
// is written. No StatefulApplication is needed for that.
func TestSnapshot_dryRun(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, configMap(namespace, "mongo-config"), statefulDatabase(namespace, "mongo"),
		consisting(namespace, "mongo", v1alpha1.ApplicationComponent{Group: "apps", Kind: "StatefulSet", Name: "mongo"}))
	claims := &corev1.PersistentVolumeClaimList{}
	require.Eventually(t, func() bool {
		return c.List(t.Context(), claims, client.InNamespace(namespace)) == nil && len(claims.Items) == 1 && claims.Items[0].Status.Phase == corev1.ClaimBound
	}, limit, often)
	got := waybill(t, cluster, "snapshot", "mongo", "-n", namespace, "--dry-run")
	require.Equal(t, 0, got.code, got.errOut)
	for _, want := range []string{
		`(?m)^Application +mongo +it is the application$`,
		`(?m)^StatefulSet.apps +mongo +component of Application "mongo"$`,
		`(?m)^ConfigMap +mongo-config +\S.*$`,
		`(?m)^PersistentVolumeClaim +data-mongo-0 +1Gi +\S.*$`,
		`(?m)^LEFT OUT +NAME +BECAUSE\nConfigMap +mongo-lost +.*does not exist$`,
	} {
		assert.Regexp(t, want, got.out)
	}
	assert.True(t, strings.HasSuffix(got.out, "\n4 objects, 1 volume; nothing is written\n"), got.out)

	got = waybill(t, cluster, "snapshot", "mongo", "-n", namespace, "--dry-run", "--claims", "tier=none")
	assert.Regexp(t, `(?m)^PersistentVolumeClaim +data-mongo-0 +not selected by --claims `, got.out)
	snapshots := &v1alpha1.ApplicationSnapshotList{}
	require.NoError(t, c.List(t.Context(), snapshots, client.InNamespace(namespace)))
	assert.Empty(t, snapshots.Items)

	kubeconfig, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"statefulapplications", "applications"}, "get", "list"))
	got = waybillWith(t, "", "snapshot", "mongo", "-n", namespace, "--dry-run", "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, `User "`+namespace+`" cannot`, "it is said which right is missing")
}
