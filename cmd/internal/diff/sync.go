package diff

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// ofGitSync returns what a GitSync would change in each of its clusters.
func (j *job) ofGitSync(ctx context.Context, gs *v1alpha1.GitSync) ([]change, error) {
	objects, err := j.contentOf(ctx, gs)
	if err != nil {
		return nil, err
	}
	if len(objects.Objects)+len(objects.Problems) == 0 && !gs.Spec.AllowEmpty {
		return nil, fmt.Errorf("%s holds no manifest, and spec.allowEmpty is not set: nothing would be applied or deleted", objects.Source)
	}
	j.warnOf(objects)
	if gs.Spec.Suspend {
		j.Warn("GitSync %s/%s is suspended: nothing changes until it is resumed", gs.Namespace, gs.Name)
	}
	api, err := j.Target.Client()
	if err != nil {
		return nil, err
	}
	hubID, err := j.ownersHub(ctx, j.Target)
	if err != nil {
		return nil, err
	}
	ignored, err := ignore.CompileForSync(gs.Spec.IgnoreDifferences)
	if err != nil {
		return nil, err
	}
	d := delivery{
		manager:   v1alpha1.FieldManager,
		owner:     &apply.Owner{HubID: hubID, Kind: v1alpha1.GitSyncKind, Namespace: gs.Namespace, Name: gs.Name},
		namespace: gs.GetDefaultNamespace(),
		prune:     gs.GetPrune(),
		unread:    objects.Problems,
		ignored:   ignored,
		adopt:     gs.Spec.Adopt,
		force:     gs.Spec.Force,
	}
	if in := gs.Status.Inventory; in != nil {
		if d.inventory, err = new(inventory.Store).Load(ctx, api, gs, *in); err != nil {
			return nil, err
		}
	}
	clusters, err := j.clustersOf(ctx, gs)
	if err != nil {
		return nil, err
	}
	var changes []change
	for _, cluster := range clusters {
		there, err := j.inCluster(ctx, d, gs, cluster, objects.Objects)
		if err != nil {
			j.omit("cluster %s is left out: %s", cluster.Name(), err)
			continue
		}
		changes = append(changes, there...)
	}
	return changes, nil
}

// warnOf warns about what of a source cannot be used.
func (j *job) warnOf(objects *installation.Objects) {
	for _, p := range objects.Problems {
		if p.Identifies() {
			j.omit("%s; what it may describe is not deleted while this is so", p)
		} else {
			j.omit("%s; nothing is deleted while this is so", p)
		}
	}
}

// inCluster returns what a delivery would change in one of its clusters.
func (j *job) inCluster(ctx context.Context, d delivery, gs *v1alpha1.GitSync, cluster *fleet.Cluster, objects []manifest.Object) ([]change, error) {
	for _, h := range gs.Status.Held {
		if gs.Spec.ClusterSelector == nil || h.Cluster == cluster.Key.Name {
			d.holds = append(d.holds, h)
		}
	}
	d, err := j.as(ctx, d, gs, cluster)
	if err != nil {
		return nil, err
	}
	changes, err := d.predict(ctx, objects)
	return j.known(changes), err
}

// known returns the changes that are known, and warns about the others.
func (j *job) known(changes []change) []change {
	return slices.DeleteFunc(changes, func(c change) bool {
		if c.omitted != nil {
			j.omit("%s in %s is left out: %s", c.id, c.cluster, c.omitted)
		}
		return c.omitted != nil
	})
}

// contentOf returns what the GitSync would deliver: from --path, else from its repository.
func (j *job) contentOf(ctx context.Context, gs *v1alpha1.GitSync) (*installation.Objects, error) {
	if j.path == "" {
		return j.sources.RenderSync(ctx, j.lookup, gs)
	}
	return installation.RenderFolder(j.path, gs.GetIgnore())
}

// clustersOf returns the clusters that a GitSync delivers to. One that is paused or being deleted is
// reported and left out: nothing would change there.
func (j *job) clustersOf(ctx context.Context, gs *v1alpha1.GitSync) ([]*fleet.Cluster, error) {
	if gs.Spec.ClusterSelector == nil {
		return []*fleet.Cluster{j.Target}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(gs.Spec.ClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.clusterSelector: %w", err)
	}
	api, err := j.Target.Client()
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := api.List(ctx, list, client.InNamespace(gs.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list clusters: %w", j.Target.Explain(err))
	}
	var clusters []*fleet.Cluster
	for i := range list.Items {
		k := &list.Items[i]
		switch {
		case k.Spec.Paused:
			j.Warn("cluster %s is left out: it is paused", k.Name)
			continue
		case !k.DeletionTimestamp.IsZero():
			j.Warn("cluster %s is left out: it is being deleted", k.Name)
			continue
		}
		cluster, err := j.Target.UserCluster(ctx, client.ObjectKeyFromObject(k))
		if err != nil {
			j.omit("cluster %s is left out: %s", k.Name, err)
			continue
		}
		clusters = append(clusters, cluster)
	}
	if len(list.Items) == 0 {
		j.Warn("spec.clusterSelector of %s matches no cluster", gs.Name)
	}
	return clusters, nil
}
