package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// CRDs, so no release deletes them: they carry the annotation that says whose they are, but not the label
// by which objects of a release are found. Nothing is written unless everything may be. As with Helm,
// subcharts that the values disable bring none.
func (s *session) applyCRDs(ctx context.Context) error {
	if s.desired.Options.CRDs == v1alpha1.CRDSkip || len(s.desired.Chart.CRDObjects()) == 0 {
		return nil
	}
	crds, err := s.validate(ctx) // before anything is written
	if err != nil || len(crds) == 0 {
		return err
	}
	var list kube.ResourceList
	for _, crd := range crds {
		found, err := s.client.build(bytes.NewReader(crd.Data), crd.Name, true)
		if err != nil {
			return s.client.fail(err)
		}
		list = append(list, found...)
	}
	plan, err := s.planCRDs(ctx, list)
	if err != nil {
		return err
	}
	err = s.client.batches(plan.write, func(info *resource.Info) error {
		_, err := s.sendCRD(ctx, info, plan.live[info], nil)
		return s.client.about("apply", info, err)
	})
	if err != nil {
		return s.client.fail(err)
	}
	fresh := plan.write.Filter(func(info *resource.Info) bool { return plan.live[info] == nil })
	if len(fresh) == 0 {
		return nil
	}
	if err := s.client.during("waiting for the CustomResourceDefinitions of the chart", func() error { return s.client.batches(fresh, s.client.established) }); err != nil {
		return s.client.fail(err)
	}
	return s.client.fail(s.served(ctx, fresh))
}

// crdPlan is what to write of the CRDs of a chart.
type crdPlan struct {
	write kube.ResourceList
	// live are those that exist.
	live map[*resource.Info]*unstructured.Unstructured
}

// planCRDs finds out which CRDs to create and, with CreateReplace, which to replace. The error names all
// whose replacement is refused.
func (s *session) planCRDs(ctx context.Context, list kube.ResourceList) (crdPlan, error) {
	plan := crdPlan{live: map[*resource.Info]*unstructured.Unstructured{}}
	writes := map[*resource.Info]bool{}
	var refusals []error
	err := s.client.batches(list, func(info *resource.Info) error {
		live, write, err := s.planCRD(ctx, info)
		s.client.mu.Lock()
		defer s.client.mu.Unlock()
		plan.live[info], writes[info] = live, write
		if ReasonOf(err) == ReasonCRD {
			refusals, err = append(refusals, err), nil
		}
		return err
	})
	if err != nil {
		return plan, s.client.fail(err)
	}
	if len(refusals) > 0 {
		slices.SortFunc(refusals, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return plan, &Error{Reason: ReasonCRD, Err: join(refusals)}
	}
	plan.write = list.Filter(func(info *resource.Info) bool { return writes[info] })
	return plan, nil
}

// planCRD returns a CRD as it is, and whether to write it. ReasonCRD says that it must not be replaced.
func (s *session) planCRD(ctx context.Context, info *resource.Info) (live *unstructured.Unstructured, write bool, err error) {
	live, err = s.client.resource(info).Get(ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, s.client.about("read", info, err)
	case s.desired.Options.CRDs != v1alpha1.CRDCreateReplace:
		return live, false, nil
	}
	after, err := s.sendCRD(ctx, info, live, []string{metav1.DryRunAll})
	if apierrors.IsInvalid(err) { // as where a version is removed that objects are stored in
		if wanted, typeErr := object(info); typeErr == nil {
			if _, refusal := ReplacesCRD(s.id, live, wanted); refusal != nil {
				return live, false, refusal
			}
		}
	}
	if err != nil {
		return live, false, s.client.about("try out", info, err)
	}
	write, err = ReplacesCRD(s.id, live, after)
	return live, write, err
}

// sendCRD writes one CRD by server-side apply, and returns it as it is then. What was created or
// changed since it was read is not overwritten.
func (s *session) sendCRD(ctx context.Context, info *resource.Info, live *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	wanted, err := object(info)
	if err != nil {
		return nil, err
	}
	wanted = wanted.DeepCopy()
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.OwnerAnnotation] = s.id.Owner
	wanted.SetAnnotations(annotations)
	if live != nil {
		wanted.SetResourceVersion(live.GetResourceVersion())
	}
	data, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: v1alpha1.HelmFieldManager, Force: ptr.To(live != nil), DryRun: dryRun}
	return s.client.resource(info).Patch(ctx, info.Name, types.ApplyPatchType, data, options)
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
