package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// establishTime is how long a new CRD may take until its objects can be created. Helm allows the
// same.
const establishTime = time.Minute

// servedEvery is how often discovery is asked for new kinds that it does not list yet.
const servedEvery = 200 * time.Millisecond

var crdKind = apiextensionsv1.Kind("CustomResourceDefinition")

// applyCRDs applies the CRDs of the chart before its templates are rendered. Releases may share
// CRDs, so CRDs carry the marks of none, and no release deletes them; a CRD that another Waybill
// owner delivers is left to that owner.
func (s *session) applyCRDs(ctx context.Context) error {
	crds := s.desired.Chart.CRDObjects()
	if len(crds) == 0 || s.desired.Options.CRDs == v1alpha1.CRDSkip {
		return nil
	}
	if err := s.validate(ctx); err != nil { // before anything is written
		return err
	}
	var list, fresh kube.ResourceList
	for _, crd := range crds {
		found, err := s.client.build(bytes.NewReader(crd.File.Data), crd.Filename, true)
		if err != nil {
			return s.client.fail(err)
		}
		list = append(list, found...)
	}
	err := s.client.batches(list, func(info *resource.Info) error {
		created, err := s.applyCRD(ctx, info)
		if created {
			s.client.mu.Lock()
			fresh.Append(info)
			s.client.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return s.client.fail(err)
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := s.client.batches(fresh, s.client.established); err != nil {
		return s.client.fail(err)
	}
	return s.client.fail(s.served(ctx, fresh))
}

// applyCRD creates or updates one CRD by server-side apply. It reports whether the CRD is new.
func (s *session) applyCRD(ctx context.Context, info *resource.Info) (created bool, err error) {
	live, err := s.client.resource(info).Get(ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		created = true
	case err != nil:
		return false, s.client.about("read", info, err)
	case s.desired.Options.CRDs == v1alpha1.CRDCreate:
		return false, nil
	}
	if owner := owned(live); owner != "" && owner != s.id.OwnerHash {
		s.client.warn(fmt.Sprintf("%s is delivered by %s, and is left to it", idOf(info), live.GetAnnotations()[v1alpha1.OwnerAnnotation]))
		return false, nil
	}
	data, err := json.Marshal(info.Object)
	if err != nil {
		return false, s.client.about("encode", info, err)
	}
	options := metav1.PatchOptions{FieldManager: v1alpha1.HelmFieldManager, Force: ptr.To(true)}
	_, err = s.client.resource(info).Patch(ctx, info.Name, types.ApplyPatchType, data, options)
	return created, s.client.about("apply", info, err)
}

func owned(live *unstructured.Unstructured) string {
	if live == nil {
		return ""
	}
	return live.GetLabels()[v1alpha1.OwnerHashLabel]
}

// established waits until objects of a new CRD can be created. Other objects in a crds folder need
// no waiting.
func (c *client) established(info *resource.Info) error {
	if info.Mapping.GroupVersionKind.GroupKind() != crdKind {
		return nil
	}
	err := c.watch(info, establishTime, func(event watch.Event) (bool, error) {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		if event.Type == watch.Deleted {
			return false, errors.New("was deleted before it was established")
		}
		return isEstablished(o)
	})
	return c.about("wait for", info, err)
}

func isEstablished(o *unstructured.Unstructured) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
		return false, fmt.Errorf("decode: %w", err)
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Status == apiextensionsv1.ConditionTrue && condition.Type == apiextensionsv1.Established {
			return true, nil
		}
		if condition.Status == apiextensionsv1.ConditionFalse && condition.Type == apiextensionsv1.NamesAccepted {
			return false, fmt.Errorf("names are not accepted: %s", condition.Message)
		}
	}
	return false, nil
}

// served waits until the kinds of new CRDs can be looked up: the API server lists them a moment
// after they are established.
func (s *session) served(ctx context.Context, crds kube.ResourceList) error {
	var kinds []schema.GroupVersionKind
	for _, info := range crds {
		found, err := kindsOf(info)
		if err != nil {
			return s.client.about("decode", info, err)
		}
		kinds = append(kinds, found...)
	}
	var missing schema.GroupVersionKind
	err := wait.PollUntilContextTimeout(ctx, servedEvery, establishTime, true, func(context.Context) (bool, error) {
		meta.MaybeResetRESTMapper(s.target.Mapper())
		s.target.Discovery().Invalidate()
		for _, missing = range kinds {
			if ok, err := isServed(s.target, missing); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", missing, err)
	}
	return nil
}

// kindsOf returns the kinds that a CRD defines in its served versions; nothing if the object is no
// CRD.
func kindsOf(info *resource.Info) ([]schema.GroupVersionKind, error) {
	if info.Mapping.GroupVersionKind.GroupKind() != crdKind {
		return nil, nil
	}
	o, err := object(info)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, version := range crd.Spec.Versions {
		if version.Served {
			kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
		}
	}
	return kinds, nil
}

// isServed reports whether both ways to look up a kind find it: the mapping of manifests, and
// discovery, which the capabilities of templates come from.
func isServed(t Target, gvk schema.GroupVersionKind) (bool, error) {
	_, err := t.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	var resources *metav1.APIResourceList
	if err == nil {
		resources, err = t.Discovery().ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || errors.Is(err, memory.ErrCacheNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }), nil
}
