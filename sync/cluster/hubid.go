package cluster

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// EnsureHubID returns the id of the hub and creates it the first time: a UUID in the ConfigMap
// waybill-hub of the system namespace, which must exist. If several processes start at once,
// all get the id of the first. An existing id is never changed, because all delivered objects are
// marked with it.
func EnsureHubID(ctx context.Context, c client.Client, systemNamespace string) (string, error) {
	key := client.ObjectKey{Namespace: systemNamespace, Name: v1alpha1.HubConfigMap}
	id, err := readHubID(ctx, c, key)
	if !apierrors.IsNotFound(err) {
		return id, err
	}
	id = uuid.NewString()
	err = c.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string]string{v1alpha1.HubIDKey: id},
	}, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case err == nil:
		return id, nil
	case apierrors.IsAlreadyExists(err):
		return readHubID(ctx, c, key)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("create hub id: namespace %s does not exist: create it, or set --system-namespace", systemNamespace)
	default:
		return "", fmt.Errorf("create hub id: %w", err)
	}
}

func readHubID(ctx context.Context, c client.Client, key client.ObjectKey) (string, error) {
	config := &corev1.ConfigMap{}
	if err := c.Get(ctx, key, config); err != nil {
		return "", fmt.Errorf("get hub id: %w", err)
	}
	id := config.Data[v1alpha1.HubIDKey]
	if err := uuid.Validate(id); err != nil {
		return "", fmt.Errorf("get hub id: key %s of ConfigMap %s is not a UUID: restore it from a backup; delete the ConfigMap only if this hub never delivered anything",
			v1alpha1.HubIDKey, key)
	}
	return id, nil
}
