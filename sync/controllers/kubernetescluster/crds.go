package kubernetescluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/charts"
	"waybill.dev/waybill/sync/cluster"
)

// installedKinds are those of our kinds that are installed in user clusters.
var installedKinds = []string{
	v1alpha1.ApplicationDefinitionKind,
	v1alpha1.ApplicationInstallationKind,
	v1alpha1.ApplicationKind,
}

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// establishTimeout bounds the wait for a new CRD to be served.
const establishTimeout = 30 * time.Second

// crd is one CRD in the form in which it is installed.
type crd struct {
	name     string
	hash     string
	versions []string
	object   *unstructured.Unstructured
}

// isInstalled reports whether a kind of ours is installed in every user cluster.
func isInstalled(kind string) bool { return slices.Contains(installedKinds, kind) }

// loadCRDs returns the CRDs of the wanted kinds.
func loadCRDs(wanted func(kind string) bool) ([]crd, error) {
	embedded, err := charts.CRDs()
	if err != nil {
		return nil, err
	}
	var loaded []crd
	for _, e := range embedded {
		if !wanted(e.Spec.Names.Kind) {
			continue
		}
		one, err := newCRD(e)
		if err != nil {
			return nil, fmt.Errorf("prepare CRD %s: %w", e.Name, err)
		}
		loaded = append(loaded, one)
	}
	return loaded, nil
}

func newCRD(e *apiextensionsv1.CustomResourceDefinition) (crd, error) {
	spec, err := json.Marshal(e.Spec)
	if err != nil {
		return crd{}, err
	}
	sum := sha256.Sum256(spec)
	one := crd{name: e.Name, hash: hex.EncodeToString(sum[:])}
	for _, v := range e.Spec.Versions {
		one.versions = append(one.versions, v.Name)
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[v1alpha1.CRDHashAnnotation] = one.hash
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e)
	if err != nil {
		return crd{}, err
	}
	delete(content, "status")
	one.object = &unstructured.Unstructured{Object: content}
	return one, nil
}

// installCRDs updates CRDs of a cluster, and returns when they are served. A CRD that is up to
// date costs one request and no write.
func installCRDs(ctx context.Context, c *cluster.Cluster, crds []crd) error {
	changed := false
	for _, one := range crds {
		wrote, err := one.install(ctx, c)
		if err != nil {
			return fmt.Errorf("install CRD %s: %w", one.name, err)
		}
		changed = changed || wrote
	}
	if changed {
		meta.MaybeResetRESTMapper(c.Mapper())
	}
	return nil
}

// install applies the CRD unless it is up to date, or comes from a newer Waybill, which means that
// it has versions that we do not know.
func (d crd) install(ctx context.Context, c *cluster.Cluster) (wrote bool, err error) {
	live, err := c.Metadata().Resource(crdResource).Get(ctx, d.name, metav1.GetOptions{})
	exists := !apierrors.IsNotFound(err)
	if exists {
		if err != nil || live.Annotations[v1alpha1.CRDHashAnnotation] == d.hash {
			return false, err
		}
		newer, err := d.isNewer(ctx, c.Dynamic())
		if err != nil || newer {
			return false, err
		}
	}
	resource := c.Dynamic().Resource(crdResource)
	options := metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true}
	if _, err := resource.Apply(ctx, d.name, d.object.DeepCopy(), options); err != nil {
		return false, err
	}
	return true, d.awaitEstablished(ctx, c.Dynamic())
}

func (d crd) isNewer(ctx context.Context, client dynamic.Interface) (bool, error) {
	live, err := client.Resource(crdResource).Get(ctx, d.name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	versions, _, err := unstructured.NestedSlice(live.Object, "spec", "versions")
	if err != nil {
		return false, err
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if !slices.Contains(d.versions, name) {
			return true, nil
		}
	}
	return false, nil
}

// awaitEstablished returns when the kind is served: the next steps create objects of it.
func (d crd) awaitEstablished(ctx context.Context, client dynamic.Interface) error {
	const often = 50 * time.Millisecond
	return wait.PollUntilContextTimeout(ctx, often, establishTimeout, true, func(ctx context.Context) (bool, error) {
		live, err := client.Resource(crdResource).Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return established(live), nil
	})
}

func established(live *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == string(apiextensionsv1.Established) && condition["status"] == string(apiextensionsv1.ConditionTrue)
	})
}
