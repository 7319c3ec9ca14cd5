package contents

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// S85: claims of a volumeClaimTemplate are distinguished from others by their number.
func TestClaimSeries(t *testing.T) {
	some, all := claimSeries{prefix: "data-db-", first: 2, last: 4}, claimSeries{prefix: "data-db-", last: math.MaxInt}
	for name, want := range map[string]struct{ some, all bool }{
		"data-db-2": {true, true}, "data-db-4": {true, true}, "data-db-1": {false, true}, "data-db-5": {false, true}, "data-db-0": {false, true},
		"data-db-": {}, "data-db-02": {}, "data-db-+2": {}, "data-db--2": {}, "data-db-2-0": {}, "data-db-x": {}, "other-db-2": {}, "data-db-99999999999999999999": {},
	} {
		assert.Equal(t, want.some, some.has(name), name)
		assert.Equal(t, want.all, all.has(name), name)
	}
}

// S85: every place of a Pod that names configuration.
func TestConfigurationOf(t *testing.T) {
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	container := func(name string) corev1.Container {
		return corev1.Container{
			Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "x"},
				{Name: "FIELD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}},
				{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name + "-config-key")}}},
				{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name + "-secret-key"), Optional: ptr.To(true)}}},
			},
			EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name + "-config")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name + "-secret")}},
			},
		}
	}
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{container("init")},
		Containers:     []corev1.Container{container("main")},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("debug-secret")}}},
		}}},
		ImagePullSecrets: []corev1.LocalObjectReference{named("pull"), named("")},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("config"), Optional: ptr.To(true)}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}},
			{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}}},
			{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref("flex")}}},
			{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref("iscsi")}}},
			{VolumeSource: corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: ref("rbd")}}},
			{VolumeSource: corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: ref("cephfs")}}},
			{VolumeSource: corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: ref("scaleio")}}},
			{VolumeSource: corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref("storageos")}}},
			{VolumeSource: corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}}},
		},
	}
	var found []string
	for _, u := range configurationOf(user{"Pod", "a"}, spec) {
		mark := ""
		if u.optional {
			mark = "?"
		}
		found = append(found, u.Kind+" "+u.name+mark)
	}
	assert.Equal(t, strings.Split("ConfigMap config?,Secret secret,Secret csi,Secret flex,Secret iscsi,Secret rbd,Secret cephfs,Secret scaleio,Secret storageos,Secret azure,"+
		"ConfigMap init-config-key,Secret init-secret-key?,ConfigMap init-config,Secret init-secret,"+
		"ConfigMap main-config-key,Secret main-secret-key?,ConfigMap main-config,Secret main-secret,Secret debug-secret,Secret pull?,ServiceAccount default", ","), found)
}

// S85: an application that is too large to be captured is refused as long as little of it is in memory.
func TestSurvey_isBounded(t *testing.T) {
	object := func(n int, value any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "apiVersion": "v1", "spec": value}}
		o.SetName(strings.Repeat("x", n))
		o.SetUID(types.UID(o.GetName()))
		return o
	}
	text := strings.Repeat("x", maxBytes/4)
	for name, c := range map[string]struct {
		value any
		most  int
		want  string
	}{
		"objects": {nil, maxObjects, "more than 5000 objects belong to it"},
		"bytes":   {text, 3, "more than 64 MiB"},
		"values":  {make([]any, maxValues/4), 3, "1000000 values"},
	} {
		s := newSurvey(&Finder{}, "a")
		s.application = object(1, nil)
		for n := range c.most {
			require.NoError(t, s.add(object(n+2, c.value), ""), name)
			if name == "objects" {
				s.size.Bytes = 0 // of the names
			}
		}
		err := s.add(object(c.most+2, c.value), "")
		require.ErrorIs(t, err, ErrTooLarge, name)
		assert.ErrorContains(t, err, c.want, name)
	}
}
