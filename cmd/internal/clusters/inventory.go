package clusters

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// tokenAnnotation on a kubeconfig Secret of the hub names the Secret, in the system namespace of the user
// cluster, that its token is from. A Secret without it was not made by this program.
const tokenAnnotation = v1alpha1.Group + "/token-secret"

// replacedAnnotation on such a Secret names, with commas, those whose tokens were replaced and have not been deleted yet:
// until the hub has connected with the new one, the old one is needed.
const replacedAnnotation = v1alpha1.Group + "/replaced-token-secrets"

// kubeconfigKey is where the kubeconfig is in the Secret.
const kubeconfigKey = "value"

// entry is one cluster in the inventory of the hub.
type entry struct {
	hub    *fleet.Cluster
	client client.Client
	// cluster and secret are what is there; nil for nothing.
	cluster *v1alpha1.KubernetesCluster
	secret  *corev1.Secret
}

// lookUp reads what the hub has of that name.
func lookUp(ctx context.Context, hub *fleet.Cluster, key client.ObjectKey) (*entry, error) {
	c, err := hub.Client()
	if err != nil {
		return nil, hub.Explain(err)
	}
	e := &entry{hub: hub, client: c}
	cluster, secret := &v1alpha1.KubernetesCluster{}, &corev1.Secret{}
	switch err := c.Get(ctx, key, cluster); {
	case err == nil:
		e.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get KubernetesCluster %s in the hub: %w", key, hub.Explain(err))
	}
	switch err := c.Get(ctx, secretKey(key), secret); {
	case err == nil:
		e.secret = secret
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get Secret %s in the hub: %w", secretKey(key), hub.Explain(err))
	}
	return e, nil
}

// secretKey names the Secret of a KubernetesCluster.
func secretKey(key client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-kubeconfig"}
}

// tokenSecret returns the name of the Secret, in the user cluster, that the token is from; empty if that is
// not known.
func (e *entry) tokenSecret() string {
	if e.secret == nil {
		return ""
	}
	return e.secret.Annotations[tokenAnnotation]
}

// fits returns an error if what the hub has of that name is something else than that cluster.
func (e *entry) fits(ctx context.Context, key client.ObjectKey, uid string) error {
	if e.cluster != nil {
		if ref := e.cluster.Spec.KubeconfigSecretRef; ref == nil || ref.Name != secretKey(key).Name || ref.Key != "" && ref.Key != kubeconfigKey {
			return fmt.Errorf("KubernetesCluster %s exists, and does not take its kubeconfig from key %s of Secret %s: choose another name", key, kubeconfigKey, secretKey(key).Name)
		}
		if bound := e.cluster.Status.UID; bound != "" && bound != uid {
			return fmt.Errorf("KubernetesCluster %s exists, and is bound to the cluster with UID %s; this one has UID %s: choose another name", key, bound, uid)
		}
	}
	if e.secret != nil && e.tokenSecret() == "" {
		return fmt.Errorf("the Secret %s exists, and was not made by this command: delete it, or choose another name", secretKey(key))
	}
	itself := &corev1.Namespace{}
	if err := e.client.Get(ctx, client.ObjectKey{Name: "kube-system"}, itself); err == nil && string(itself.UID) == uid {
		return fmt.Errorf("this is the cluster of the hub itself: a KubernetesCluster without kubeconfigSecretRef stands for it")
	}
	return nil
}

// sharedWith returns another KubernetesCluster that leads to the cluster; nil if none is known.
func (e *entry) sharedWith(ctx context.Context, key client.ObjectKey, uid string) *v1alpha1.KubernetesCluster {
	list := &v1alpha1.KubernetesClusterList{}
	if e.client.List(ctx, list) != nil {
		return nil // without the right to list them all, there is no warning
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Status.UID == uid && client.ObjectKeyFromObject(other) != key {
			return other
		}
	}
	return nil
}

// wanted is what a KubernetesCluster is to say.
type wanted struct {
	key         client.ObjectKey
	labels      map[string]string
	agent, seed bool
}

// object returns the KubernetesCluster, based on what is there.
func (w wanted) object(live *v1alpha1.KubernetesCluster) *v1alpha1.KubernetesCluster {
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}}
	kc.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: secretKey(w.key).Name}
	if live != nil {
		kc = live.DeepCopy()
	}
	if len(w.labels) > 0 && kc.Labels == nil {
		kc.Labels = map[string]string{}
	}
	maps.Copy(kc.Labels, w.labels)
	if w.agent && kc.Spec.Agent == nil {
		kc.Spec.Agent = &v1alpha1.ClusterAgent{}
	}
	if w.seed {
		kc.Spec.Role = v1alpha1.ClusterRoleSeed
	}
	return kc
}

// write makes the KubernetesCluster say what is wanted, and returns what became of it.
func (e *entry) write(ctx context.Context, w wanted, dryRun bool) (string, error) {
	kc := w.object(e.cluster)
	var create []client.CreateOption
	var patch []client.PatchOption
	if dryRun {
		create, patch = append(create, client.DryRunAll), append(patch, client.DryRunAll)
	}
	what, err := made(dryRun), error(nil)
	if e.cluster == nil {
		err = e.client.Create(ctx, kc, append(create, client.FieldOwner(cli.FieldManager))...)
	} else {
		before := e.cluster.DeepCopy()
		if what = changed(dryRun); unchanged(before, kc) {
			what = "is there"
		} else {
			err = e.client.Patch(ctx, kc, client.MergeFrom(before), append(patch, client.FieldOwner(cli.FieldManager))...)
		}
	}
	if err != nil {
		return "", fmt.Errorf("write KubernetesCluster %s in the hub: %w", w.key, e.hub.Explain(err))
	}
	if !dryRun {
		e.cluster = kc
	}
	return what, nil
}

func unchanged(before, after *v1alpha1.KubernetesCluster) bool {
	change, err := client.MergeFrom(before).Data(after)
	return err == nil && bytes.Equal(change, []byte("{}"))
}

func changed(dryRun bool) string {
	if dryRun {
		return "would be changed"
	}
	return "changed"
}

// replaced returns the names of the Secrets whose tokens were replaced and have not been deleted yet.
func (e *entry) replaced() []string {
	if e.secret == nil || e.secret.Annotations[replacedAnnotation] == "" {
		return nil
	}
	return strings.Split(e.secret.Annotations[replacedAnnotation], ",")
}

// forgetReplaced records that there is no token any more that was replaced.
func (e *entry) forgetReplaced(ctx context.Context) error {
	before := e.secret.DeepCopy()
	delete(e.secret.Annotations, replacedAnnotation)
	if err := e.client.Patch(ctx, e.secret, client.MergeFrom(before), client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("write Secret %s in the hub: %w", client.ObjectKeyFromObject(before), e.hub.Explain(err))
	}
	return nil
}

// writeSecret keeps a kubeconfig and the name of the Secret that its token is from, and returns what became
// of it.
func (e *entry) writeSecret(ctx context.Context, key client.ObjectKey, kubeconfig []byte, token string) (string, error) {
	if e.secret != nil && bytes.Equal(e.secret.Data[kubeconfigKey], kubeconfig) && e.tokenSecret() == token {
		return "is there", nil
	}
	named := secretKey(key)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: named.Name}}
	if e.secret != nil {
		secret = e.secret.DeepCopy()
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if before := secret.Annotations[tokenAnnotation]; before != "" && before != token {
		secret.Annotations[replacedAnnotation] = strings.Join(append(e.replaced(), before), ",")
	}
	secret.Annotations[tokenAnnotation] = token
	secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
	what, err := made(false), error(nil)
	if e.secret == nil {
		err = e.client.Create(ctx, secret, client.FieldOwner(cli.FieldManager))
	} else {
		what, err = changed(false), e.client.Update(ctx, secret, client.FieldOwner(cli.FieldManager))
	}
	if err != nil {
		return "", fmt.Errorf("write Secret %s in the hub: %w", named, e.hub.Explain(err))
	}
	e.secret = secret
	return what, nil
}
