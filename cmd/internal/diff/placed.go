package diff

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// errNotScheduled says that an application has no cluster to compare with.
var errNotScheduled = errors.New("it is not scheduled to a cluster yet, so there is nothing to compare with")

// ofKubernetesApplication returns what the templates of an application would change in the cluster
// that it is scheduled to, including the objects whose templates were removed.
func (j *job) ofKubernetesApplication(ctx context.Context, app *v1alpha1.KubernetesApplication) ([]change, error) {
	name, err := j.clusterOf(ctx, app)
	if err != nil {
		return nil, err
	}
	cluster, err := j.Target.UserCluster(ctx, types.NamespacedName{Namespace: app.Namespace, Name: name})
	if err != nil {
		return nil, err
	}
	live, err := j.resourcesOf(ctx, app)
	if err != nil {
		return nil, err
	}
	wanted, left := placed(app, live)
	objects, err := templated(wanted)
	if err != nil {
		return nil, err
	}
	at, err := j.destination(ctx, cluster, objects)
	if err != nil {
		return nil, err
	}
	changes := make([]change, len(wanted))
	var group errgroup.Group
	group.SetLimit(requests)
	for i := range wanted {
		group.Go(func() (err error) {
			changes[i], err = at.delivery(&wanted[i]).predictOne(ctx, objects[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range left { // their templates are gone
		d := at.delivery(&left[i])
		removals, err := d.predictRemovals(ctx, d.inventory)
		if err != nil {
			return nil, err
		}
		changes = append(changes, removals...)
	}
	return changes, nil
}

// placed returns the resources as the templates define them, in their order, and the live ones
// whose template is gone. Annotations of a template, such as the one that allows taking over an
// object, are added to those that users have set in the hub.
func placed(app *v1alpha1.KubernetesApplication, live []v1alpha1.KubernetesApplicationResource) (wanted, left []v1alpha1.KubernetesApplicationResource) {
	left = slices.Clone(live)
	for _, t := range app.Spec.ResourceTemplates {
		one := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: t.Metadata.Name}}
		if i := slices.IndexFunc(left, func(kar v1alpha1.KubernetesApplicationResource) bool { return kar.Name == t.Metadata.Name }); i >= 0 {
			one = *left[i].DeepCopy()
			left = slices.Delete(left, i, i+1)
		}
		if one.Annotations == nil {
			one.Annotations = map[string]string{}
		}
		maps.Copy(one.Annotations, t.Metadata.Annotations)
		one.Spec.Template = t.Spec.Template
		wanted = append(wanted, one)
	}
	return wanted, left
}

// clusterOf returns the name of the cluster that an application is scheduled to. For an application
// from a file, that is the cluster of the one in the hub.
func (j *job) clusterOf(ctx context.Context, app *v1alpha1.KubernetesApplication) (string, error) {
	if app.Spec.ClusterName != "" {
		return app.Spec.ClusterName, nil
	}
	c, err := j.Target.Client()
	if err != nil {
		return "", err
	}
	there := &v1alpha1.KubernetesApplication{}
	err = c.Get(ctx, client.ObjectKeyFromObject(app), there)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get: %w", j.Target.Explain(err))
	}
	if there.Spec.ClusterName == "" {
		return "", errNotScheduled
	}
	return there.Spec.ClusterName, nil
}

// resourcesOf returns the resources that the application controls.
func (j *job) resourcesOf(ctx context.Context, app *v1alpha1.KubernetesApplication) ([]v1alpha1.KubernetesApplicationResource, error) {
	c, err := j.Target.Client()
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.KubernetesApplicationResourceList{}
	err = c.List(ctx, list, client.InNamespace(app.Namespace), client.MatchingLabels{v1alpha1.KubernetesApplicationLabel: app.Name})
	if err != nil {
		return nil, fmt.Errorf("list its resources: %w", j.Target.Explain(err))
	}
	controlled := func(kar v1alpha1.KubernetesApplicationResource) bool {
		controller := metav1.GetControllerOf(&kar)
		return controller != nil && controller.Kind == v1alpha1.KubernetesApplicationKind && controller.Name == app.Name
	}
	return slices.DeleteFunc(list.Items, func(kar v1alpha1.KubernetesApplicationResource) bool { return !controlled(kar) }), nil
}

// ofResource returns what the template of one resource would change, given the kinds that its
// application defines by other resources.
func (j *job) ofResource(ctx context.Context, kar *v1alpha1.KubernetesApplicationResource) ([]change, error) {
	if kar.Spec.ClusterName == "" {
		return nil, errNotScheduled
	}
	cluster, err := j.Target.UserCluster(ctx, types.NamespacedName{Namespace: kar.Namespace, Name: kar.Spec.ClusterName})
	if err != nil {
		return nil, err
	}
	resources := []v1alpha1.KubernetesApplicationResource{*kar}
	if app := kar.Labels[v1alpha1.KubernetesApplicationLabel]; app != "" {
		others, err := j.resourcesOf(ctx, &v1alpha1.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: kar.Namespace, Name: app}})
		if err != nil {
			return nil, err
		}
		resources = append(resources, others...)
	}
	objects, err := templated(resources)
	if err != nil {
		return nil, err
	}
	at, err := j.destination(ctx, cluster, objects)
	if err != nil {
		return nil, err
	}
	one, err := at.delivery(kar).predictOne(ctx, objects[0])
	return []change{one}, err
}

// destination is a cluster that resources are delivered to.
type destination struct {
	cluster *fleet.Cluster
	// hubID is the id of the hub that the resources live on; empty if it is not known.
	hubID string
	// provided is what their objects provide for one another.
	provided provided
}

func (j *job) destination(ctx context.Context, cluster *fleet.Cluster, objects []manifest.Object) (destination, error) {
	hubID, err := j.ownersHub(ctx, j.Target)
	return destination{cluster: cluster, hubID: hubID, provided: provided{}.with(objects)}, err
}

// delivery returns how the object of a resource is applied.
func (at destination) delivery(kar *v1alpha1.KubernetesApplicationResource) delivery {
	d := delivery{
		cluster: at.cluster, manager: v1alpha1.FieldManager, namespace: metav1.NamespaceDefault, provided: at.provided,
		owner: &apply.Owner{HubID: at.hubID, Kind: v1alpha1.KubernetesApplicationResourceKind, Namespace: kar.Namespace, Name: kar.Name},
	}
	d.holds, d.as = kar.Status.Held, kar.UID
	if in := kar.Status.Inventory; in != nil {
		d.inventory, _ = inventory.Decode(in.Entries) // what cannot be read is not ours
	}
	return d
}

// templated returns the objects of resources. Whether one may be taken over is decided by the
// resource's annotation.
func templated(resources []v1alpha1.KubernetesApplicationResource) ([]manifest.Object, error) {
	objects := make([]manifest.Object, len(resources))
	for i := range resources {
		object, err := resources[i].Spec.Template.Object()
		if err != nil {
			return nil, fmt.Errorf("template of %s: %w", resources[i].Name, err)
		}
		if adopt, set := resources[i].Annotations[v1alpha1.AdoptAnnotation]; set {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.AdoptAnnotation] = adopt
			object.SetAnnotations(annotations)
		}
		objects[i] = manifest.Object{Unstructured: object}
	}
	return objects, nil
}
