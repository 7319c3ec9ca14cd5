package kubernetesapplication

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// ledger counts what is placed where, in templates. It also knows of what was decided a
// moment ago and is in no cache yet, so that several workers do not all choose the cluster
// that is empty.
type ledger struct {
	mu sync.Mutex
	// byApp is where each application is.
	byApp map[types.NamespacedName]entry
	// placed counts the templates per cluster.
	placed map[types.NamespacedName]int
	// uids are those of the applications that were worked on, also of those that are
	// nowhere: when one is gone, its name is all that is left to know it by.
	uids map[types.NamespacedName]types.UID
}

type entry struct {
	uid       types.UID
	cluster   types.NamespacedName
	templates int
	// assumed says that no cache has shown the decision yet.
	assumed bool
}

func newLedger() *ledger {
	return &ledger{
		byApp: map[types.NamespacedName]entry{}, placed: map[types.NamespacedName]int{},
		uids: map[types.NamespacedName]types.UID{},
	}
}

// fill notes every application that there is. Without it, the first decisions after a start
// would be made as if all clusters were empty.
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

// note takes in an application as a cache shows it.
func (l *ledger) note(key types.NamespacedName, app *v1alpha1.KubernetesApplication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byApp[key]; known.assumed && known.uid == app.UID && app.Spec.ClusterName == "" {
		return // the cache is behind
	}
	l.put(key, app, app.Spec.ClusterName, false)
}

// assume has choose decide for an application, among clusters of its namespace, with the
// knowledge of all decisions before.
func (l *ledger) assume(key types.NamespacedName, app *v1alpha1.KubernetesApplication, choose func(placed func(string) int) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := choose(func(cluster string) int {
		return l.placed[types.NamespacedName{Namespace: key.Namespace, Name: cluster}]
	})
	l.put(key, app, chosen, true)
	return chosen
}

// assumed says whether a cluster was chosen for the application and no cache shows it yet.
func (l *ledger) assumed(key types.NamespacedName, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byApp[key]
	return known.assumed && known.uid == uid
}

// met notes that an application is worked on, and returns the UID of another that had its
// name before; empty where none had.
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

// leave takes out an application that is gone, and returns the UID that it had; empty where
// it was never worked on.
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

// put takes the place of what was known of the application. The caller holds the lock.
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

// drop takes an application out. The caller holds the lock.
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
