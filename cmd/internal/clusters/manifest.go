package clusters

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/mask"
)

// printManifests prints what would be made, of each cluster, without the token, which there is not yet.
func printManifests(w io.Writer, asJSON bool, a access, wants wanted) error {
	secret := &corev1.Secret{Data: map[string][]byte{kubeconfigKey: nil}}
	secret.Namespace, secret.Name = secretKey(wants.key).Namespace, secretKey(wants.key).Name
	for _, part := range []struct {
		where   string
		objects []client.Object
	}{
		{"in the cluster", append(a.objects(), a.token())},
		{"in the hub; the Secret holds a kubeconfig with the token", []client.Object{secret, wants.object(nil)}},
	} {
		for i, o := range part.objects {
			heading := ""
			if i == 0 {
				heading = part.where
			}
			if err := printManifest(w, asJSON, o, heading); err != nil {
				return err
			}
		}
	}
	return nil
}

func printManifest(w io.Writer, asJSON bool, o client.Object, heading string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", describe(o), err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kindOf(o))
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	object = mask.Secret(object)
	if asJSON {
		out, err := json.MarshalIndent(object.Object, "", "    ")
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", out)
		}
		return err
	}
	out, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("write manifest of %s: %w", describe(o), err)
	}
	if heading != "" {
		heading = "# " + heading + "\n"
	}
	_, err = fmt.Fprintf(w, "---\n%s%s", heading, out)
	return err
}

// kindOf returns the kind of an object of those that are made.
func kindOf(o client.Object) schema.GroupVersionKind {
	switch o.(type) {
	case *corev1.Namespace:
		return corev1.SchemeGroupVersion.WithKind("Namespace")
	case *corev1.ServiceAccount:
		return corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	case *corev1.Secret:
		return corev1.SchemeGroupVersion.WithKind("Secret")
	case *rbacv1.ClusterRole:
		return rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	case *rbacv1.Role:
		return rbacv1.SchemeGroupVersion.WithKind("Role")
	case *rbacv1.RoleBinding:
		return rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	case *rbacv1.ClusterRoleBinding:
		return rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
	default:
		return v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesClusterKind)
	}
}
