package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/observe"
)

// kind selects all objects of one of Waybill's kinds, by its plural.
func kind(plural string) observe.Of {
	return observe.Of{GroupVersionResource: v1alpha1.GroupVersion.WithResource(plural)}
}

// workloads selects all objects of a built-in kind in a namespace.
func workloads(group, plural, namespace string) observe.Of {
	return observe.Of{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural},
		Namespace:            namespace,
	}
}

// podsOf selects the Pods of an installation's release.
func podsOf(namespace, release string) observe.Of {
	of := workloads("", "pods", namespace)
	of.Selector = "app.kubernetes.io/instance=" + release
	return of
}

// podReady matches a Pod that is Ready and not being deleted.
func podReady(o *observe.Object) bool {
	status, _, _ := observe.Condition(o, "Ready")
	return status == "True" && o.GetDeletionTimestamp() == nil
}

// runs matches a Pod whose first container has that image.
func runs(image string) observe.Match {
	return func(o *observe.Object) bool {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers") // every Pod has some
		first, ok := containers[0].(map[string]any)
		return ok && first["image"] == image
	}
}
