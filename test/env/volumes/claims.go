package volumes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Claim returns a small claim of a StorageClass.
func Claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To(class),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			},
		},
	}
}

// ClaimFrom is Claim with the content of a VolumeSnapshot of the namespace.
func ClaimFrom(snapshot, namespace, name, class string) *corev1.PersistentVolumeClaim {
	claim := Claim(namespace, name, class)
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: snapshot}
	return claim
}

// Pod returns a Pod with one container, where each claim is mounted at a path of its name.
func Pod(namespace, name string, claims ...string) *corev1.Pod {
	container := corev1.Container{Name: "main", Image: "main"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(0)) // a namespace waits half of it before it looks again
	for _, claim := range claims {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: claim, MountPath: "/" + claim})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}
