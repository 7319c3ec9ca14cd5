package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errWatchEnded means that an API server has ended a watch, as it does every few minutes.
var errWatchEnded = errors.New("the watch has ended")

// Using returns the names of the Pods of a namespace that use one of the claims: those whose containers
// have all ended for good do not.
func Using(ctx context.Context, c client.Reader, namespace string, claims []string) ([]string, error) {
	found, _, err := using(ctx, c, namespace, claims)
	return found, err
}

// AwaitUnused returns when no Pod of the namespace uses any of the claims, or ctx ends.
func AwaitUnused(ctx context.Context, c client.WithWatch, namespace string, claims []string) error {
	for {
		found, version, err := using(ctx, c, namespace, claims)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := awaitOne(ctx, c, namespace, version); err != nil && !errors.Is(err, errWatchEnded) {
			return err
		}
	}
}

// awaitOne returns when a Pod of the namespace has ended or is gone.
func awaitOne(ctx context.Context, c client.WithWatch, namespace, version string) error {
	watch, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return fmt.Errorf("watch Pods: %w", err)
	}
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-watch.ResultChan():
			pod, isPod := event.Object.(*corev1.Pod)
			switch {
			case !open || !isPod:
				return errWatchEnded
			case event.Type == apiwatch.Deleted || ended(pod):
				return nil
			}
		}
	}
}

func using(ctx context.Context, c client.Reader, namespace string, claims []string) ([]string, string, error) {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, "", fmt.Errorf("list Pods: %w", err)
	}
	var found []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; !ended(pod) && Uses(pod, claims) {
			found = append(found, pod.Name)
		}
	}
	return found, pods.ResourceVersion, nil
}

// ended reports whether all containers of a Pod have ended for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Uses reports whether a Pod mounts one of the claims. That of a generic ephemeral volume is named after
// both.
func Uses(pod *corev1.Pod, claims []string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		switch {
		case v.PersistentVolumeClaim != nil:
			return slices.Contains(claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			return slices.Contains(claims, pod.Name+"-"+v.Name)
		}
		return false
	})
}
