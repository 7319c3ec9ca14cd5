package contents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// maxSteps is how many controllers may be between an object and the one that controls it all; there are
// three between a Pod and a custom resource.
const maxSteps = 8

// root returns the object of the application that controls an object, over any number of steps: the one
// that is the farthest away.
func (s *survey) root(ctx context.Context, o metav1.Object) (root id, found bool, err error) {
	next := metav1.GetControllerOfNoCopy(o)
	for range maxSteps {
		if next == nil {
			break
		}
		uid := next.UID
		if key, ours := s.byUID[uid]; ours {
			root, found = key, true
			next = metav1.GetControllerOfNoCopy(s.objects[key])
		} else if next, err = s.ownerOf(ctx, next); err != nil {
			return id{}, false, err
		}
		if next != nil && next.UID == uid {
			break
		}
	}
	return root, found, nil
}

// ownerOf returns who controls the object that a reference names. Of Kubernetes' own kinds, Deployments
// and CronJobs are the only ones that control others which control Pods.
func (s *survey) ownerOf(ctx context.Context, ref *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	if !strings.Contains(ref.APIVersion, "/") {
		group = ""
	}
	kind := schema.GroupKind{Group: group, Kind: ref.Kind}
	if kind == podKind || kind != replicaSetKind && kind != jobKind && !s.hasCustomObjects() {
		return nil, nil // nothing of the application controls such an object
	}
	owners, known := s.owners[kind]
	if !known {
		var err error
		if owners, err = s.listOwners(ctx, kind); err != nil {
			return nil, err
		}
		s.owners[kind] = owners
	}
	return owners[ref.UID], nil
}

// listOwners returns who controls the objects of a kind, by their UID.
func (s *survey) listOwners(ctx context.Context, kind schema.GroupKind) (map[types.UID]*metav1.OwnerReference, error) {
	mapping, err := s.Mapper.RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find kind %s: %w", kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return nil, nil
	}
	owners := map[types.UID]*metav1.OwnerReference{}
	for token := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		err := s.Reader.List(ctx, list, client.InNamespace(s.namespace), client.Limit(metadataPage), client.Continue(token))
		if err != nil {
			return nil, fmt.Errorf("list %s in namespace %q, to know whose their Pods are: %w", kind, s.namespace, err)
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil {
				owners[list.Items[i].UID] = owner
			}
		}
		if token = list.Continue; token == "" {
			return owners, nil
		}
	}
}

// metadataPage is how many objects are read at once where only metadata is.
const metadataPage = 100

// builtIn reports whether a kind is Kubernetes' own.
func builtIn(kind schema.GroupKind) bool {
	return !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
}

// hasCustomObjects reports whether the application has objects whose controllers are not part of
// Kubernetes, and may control anything. Applications control nothing but the Pods of health checks.
func (s *survey) hasCustomObjects() bool {
	for key := range s.objects {
		if !builtIn(key.GroupKind) && key.Group != v1alpha1.Group {
			return true
		}
	}
	return false
}

// dropControlled takes off what another object of the application controls.
func (s *survey) dropControlled(ctx context.Context) error {
	dropped := map[id]string{}
	for _, key := range s.sorted() {
		if key.GroupKind == claimKind {
			continue
		}
		root, found, err := s.root(ctx, s.objects[key])
		if err != nil {
			return err
		}
		if found {
			dropped[key] = fmt.Sprintf("%s %q makes it", root.Kind, root.name)
		}
	}
	s.drop(dropped)
	return nil
}

// dropFinished takes off Jobs that have finished: what they have done is in the data, and they would do
// it again.
func (s *survey) dropFinished(context.Context) error {
	dropped := map[id]string{}
	for key, o := range s.objects {
		if key.GroupKind != jobKind {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			over := condition["type"] == string(batchv1.JobComplete) || condition["type"] == string(batchv1.JobFailed)
			if over && condition["status"] == string(corev1.ConditionTrue) {
				dropped[key] = "it has finished"
			}
		}
	}
	s.drop(dropped)
	return nil
}

// drop takes objects off, for the reasons given.
func (s *survey) drop(dropped map[id]string) {
	for key, why := range dropped {
		s.leave(key, why)
		delete(s.byUID, s.objects[key].GetUID())
		delete(s.objects, key)
	}
}

// podPage is how many Pods are read at once.
const podPage = 50

// findPods finds the Pods, and adds those that are components themselves.
func (s *survey) findPods(ctx context.Context) error {
	for token := ""; ; {
		list := &corev1.PodList{}
		if err := s.Reader.List(ctx, list, client.InNamespace(s.namespace), client.Limit(podPage), client.Continue(token)); err != nil {
			return fmt.Errorf("list Pods in namespace %q: %w", s.namespace, err)
		}
		for i := range list.Items {
			if err := s.findPod(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		if token = list.Continue; token == "" {
			return nil
		}
	}
}

func (s *survey) findPod(ctx context.Context, pod *corev1.Pod) error {
	claims := claimsOf(user{kind: podKind.Kind, name: pod.Name}, &pod.Spec, pod.Name)
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	for _, c := range claims {
		if !finished && !slices.Contains(s.mounted[c.name], pod.Name) {
			s.mounted[c.name] = append(s.mounted[c.name], pod.Name)
		}
	}
	root, ours, err := s.root(ctx, pod)
	if err != nil {
		return err
	}
	if root.GroupKind == applicationKind {
		return nil // that of a health check
	}
	if !ours {
		if ours, err = s.addPod(ctx, pod); err != nil || !ours {
			return err
		}
	}
	s.size.Bytes += pod.Size()
	if len(s.pods) >= maxObjects || s.size.Bytes > maxBytes {
		return fmt.Errorf("%w: it has more than %d Pods, or these have more than %d MiB", ErrTooLarge, maxObjects, maxBytes>>20)
	}
	if !finished && pod.DeletionTimestamp == nil {
		pod.SetManagedFields(nil)
		s.pods = append(s.pods, *pod)
	}
	s.uses = append(s.uses, claims...)
	if _, described := templates[root.GroupKind]; !described {
		s.uses = append(s.uses, configurationOf(user{kind: podKind.Kind, name: pod.Name}, &pod.Spec)...)
	}
	return nil
}

// addPod adds a Pod if it is a component: without the Node that it runs on, which the scheduler chose.
func (s *survey) addPod(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return false, nil
	}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(podKind.Kind))
	for _, member := range s.applications {
		ours, err := s.isComponent(ctx, member, pod)
		if err != nil {
			return false, err
		}
		if !ours {
			continue
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			s.leave(id{podKind, pod.Name}, "it has finished")
			return true, nil
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			return false, fmt.Errorf("convert Pod %q: %w", pod.Name, err)
		}
		unstructured.RemoveNestedField(content, "spec", "nodeName")
		return true, s.add(&unstructured.Unstructured{Object: content}, componentOf(member))
	}
	return false, nil
}
