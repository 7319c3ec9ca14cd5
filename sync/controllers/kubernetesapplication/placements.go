package kubernetesapplication

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// placements counts the templates that are placed in each cluster. It includes decisions that are
// so recent that no cache shows them yet, so that several workers do not all choose the cluster
// that is empty.
type placements struct {
	mu sync.Mutex
	// byApp has where each application is placed.
	byApp map[types.NamespacedName]entry
	// placed counts the templates per cluster.
	placed map[types.NamespacedName]int
	// uids has the UIDs of the applications that were reconciled, including those without a
	// cluster: when an application is gone, its name is all that is left to find the UID by.
	uids map[types.NamespacedName]types.UID
}

type entry struct {
	uid       types.UID
	cluster   types.NamespacedName
	templates int
	// assumed means that no cache has shown the decision yet.
	assumed bool
}

func newPlacements() *placements {
	return &placements{
		byApp: map[types.NamespacedName]entry{}, placed: map[types.NamespacedName]int{},
		uids: map[types.NamespacedName]types.UID{},
	}
}

// fill records every application that exists. Without it, the first decisions after a start would
// be made as if all clusters were empty.
func (p *placements) fill(ctx context.Context, c client.Reader) error {
	list := &v1alpha1.KubernetesApplicationList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list applications: %w", err)
	}
	for i := range list.Items {
		p.note(client.ObjectKeyFromObject(&list.Items[i]), &list.Items[i])
	}
	return nil
}

// note records an application as a cache shows it.
func (p *placements) note(key types.NamespacedName, app *v1alpha1.KubernetesApplication) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byApp[key]; known.assumed && known.uid == app.UID && app.Spec.ClusterName == "" {
		return // the cache is behind
	}
	p.put(key, app, app.Spec.ClusterName, false)
}

// assume calls choose to pick a cluster of the application's namespace, knowing all earlier
// decisions, and records its choice.
func (p *placements) assume(key types.NamespacedName, app *v1alpha1.KubernetesApplication, choose func(placed func(string) int) string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	chosen := choose(func(cluster string) int {
		return p.placed[types.NamespacedName{Namespace: key.Namespace, Name: cluster}]
	})
	p.put(key, app, chosen, true)
	return chosen
}

// assumed reports whether a cluster was chosen for the application and no cache shows it yet.
func (p *placements) assumed(key types.NamespacedName, uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byApp[key]
	return known.assumed && known.uid == uid
}

// met records that an application is being reconciled, and returns the UID of an earlier one of the
// same name; empty if there was none.
func (p *placements) met(key types.NamespacedName, uid types.UID) types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.uids[key]
	p.uids[key] = uid
	if before == uid {
		return ""
	}
	return before
}

// leave removes an application that is gone, and returns its UID; empty if it was never reconciled.
func (p *placements) leave(key types.NamespacedName) types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := p.uids[key]
	delete(p.uids, key)
	p.drop(key)
	return uid
}

// forget takes a decision back.
func (p *placements) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(key)
}

// put replaces what was known of an application. The caller holds the lock.
func (p *placements) put(key types.NamespacedName, app *v1alpha1.KubernetesApplication, cluster string, assumed bool) {
	p.drop(key)
	if cluster == "" {
		return
	}
	e := entry{
		uid: app.UID, cluster: types.NamespacedName{Namespace: key.Namespace, Name: cluster},
		templates: len(app.Spec.ResourceTemplates), assumed: assumed,
	}
	p.byApp[key] = e
	p.placed[e.cluster] += e.templates
}

// drop removes an application. The caller holds the lock.
func (p *placements) drop(key types.NamespacedName) {
	known, ok := p.byApp[key]
	if !ok {
		return
	}
	delete(p.byApp, key)
	if p.placed[known.cluster] -= known.templates; p.placed[known.cluster] <= 0 {
		delete(p.placed, known.cluster)
	}
}
