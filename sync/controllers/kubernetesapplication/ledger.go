package kubernetesapplication

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// ledger counts the templates that are placed in each cluster. It includes decisions that are so
// recent that no cache shows them yet, so that several workers do not all choose the cluster that
// is empty.
type ledger struct {
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

func newLedger() *ledger {
	return &ledger{
		byApp: map[types.NamespacedName]entry{}, placed: map[types.NamespacedName]int{},
		uids: map[types.NamespacedName]types.UID{},
	}
}

// fill records every application that exists. Without it, the first decisions after a start would
// be made as if all clusters were empty.
func (l *ledger) fill(ctx context.Context, c client.Reader) error {
	list := &v1alpha1.KubernetesApplicationList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list applications: %w", err)
	}
	for i := range list.Items {
		l.note(client.ObjectKeyFromObject(&list.Items[i]), &list.Items[i])
	}
	return nil
}

// note records an application as a cache shows it.
func (l *ledger) note(key types.NamespacedName, app *v1alpha1.KubernetesApplication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byApp[key]; known.assumed && known.uid == app.UID && app.Spec.ClusterName == "" {
		return // the cache is behind
	}
	l.put(key, app, app.Spec.ClusterName, false)
}

// assume calls choose to pick a cluster of the application's namespace, knowing all earlier
// decisions, and records its choice.
func (l *ledger) assume(key types.NamespacedName, app *v1alpha1.KubernetesApplication, choose func(placed func(string) int) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := choose(func(cluster string) int {
		return l.placed[types.NamespacedName{Namespace: key.Namespace, Name: cluster}]
	})
	l.put(key, app, chosen, true)
	return chosen
}

// assumed reports whether a cluster was chosen for the application and no cache shows it yet.
func (l *ledger) assumed(key types.NamespacedName, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byApp[key]
	return known.assumed && known.uid == uid
}

// met records that an application is being reconciled, and returns the UID of an earlier one of the
// same name; empty if there was none.
func (l *ledger) met(key types.NamespacedName, uid types.UID) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.uids[key]
	l.uids[key] = uid
	if before == uid {
		return ""
	}
	return before
}

// leave removes an application that is gone, and returns its UID; empty if it was never reconciled.
func (l *ledger) leave(key types.NamespacedName) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	uid := l.uids[key]
	delete(l.uids, key)
	l.drop(key)
	return uid
}

// forget takes a decision back.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(key)
}

// put replaces what was known of an application. The caller holds the lock.
func (l *ledger) put(key types.NamespacedName, app *v1alpha1.KubernetesApplication, cluster string, assumed bool) {
	l.drop(key)
	if cluster == "" {
		return
	}
	e := entry{
		uid: app.UID, cluster: types.NamespacedName{Namespace: key.Namespace, Name: cluster},
		templates: len(app.Spec.ResourceTemplates), assumed: assumed,
	}
	l.byApp[key] = e
	l.placed[e.cluster] += e.templates
}

// drop removes an application. The caller holds the lock.
func (l *ledger) drop(key types.NamespacedName) {
	known, ok := l.byApp[key]
	if !ok {
		return
	}
	delete(l.byApp, key)
	if l.placed[known.cluster] -= known.templates; l.placed[known.cluster] <= 0 {
		delete(l.placed, known.cluster)
	}
}
