package sourcecredential

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

// shown is how many problems a message names.
const shown = 5

// report is what a look of a lane has found, by namespace.
type report struct {
	copies   map[string]int
	problems map[string][]string
	// err is the failure of the cluster as a whole; nil if it answers.
	err error
}

func (r *report) equal(other *report) bool {
	if r == nil || other == nil {
		return r == other
	}
	return fmt.Sprint(r.copies, r.problems, r.err) == fmt.Sprint(other.copies, other.problems, other.err)
}

// tell publishes what the lane has found, and wakes the KubernetesClusters that it concerns.
func (l *lane) tell(wanted map[string]*wanted) {
	found := &report{copies: map[string]int{}, problems: map[string][]string{}}
	for name, c := range l.credentials {
		if w := wanted[name]; w != nil {
			for _, namespace := range w.namespaces {
				found.copies[namespace]++
			}
		}
		if c.result.Err != nil {
			found.err = c.result.Err
		}
		for _, p := range c.result.Problems {
			found.problems[p.ID.Namespace] = append(found.problems[p.ID.Namespace], l.describe(p))
			if !p.Removal {
				found.copies[p.ID.Namespace]--
			}
		}
	}
	for _, problems := range found.problems {
		slices.Sort(problems)
	}
	l.mu.Lock()
	last := l.report
	l.report = found
	l.mu.Unlock()
	if !found.equal(last) {
		l.wakeClusters()
	}
}

// describe says what is wrong with a copy, and what to do.
func (l *lane) describe(p manifest.Problem) string {
	switch p.Reason {
	case apply.ReasonConflict:
		return fmt.Sprintf("Secret %s/%s exists and is not a copy of Secret %s/%s of this hub: delete it, or rename the one of this hub",
			p.ID.Namespace, p.ID.Name, l.r.SystemNamespace, p.ID.Name)
	case apply.ReasonNamespaceNotFound:
		return fmt.Sprintf("namespace %s does not exist: create it", p.ID.Namespace)
	default:
		return p.Error()
	}
}

// wakeClusters wakes the KubernetesClusters that the lane has something to say about.
func (l *lane) wakeClusters() {
	if !l.isHub() {
		l.r.wake(l.seed)
		return
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := l.r.Client.List(l.cluster.Context(), list, client.UnsafeDisableDeepCopy); err != nil {
		l.log(err, "list clusters")
		return
	}
	for i := range list.Items {
		if kc := &list.Items[i]; !kc.IsSeed() {
			l.r.wake(client.ObjectKeyFromObject(kc))
		}
	}
}

// found returns the last report; nil if there is none yet.
func (l *lane) found() *report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

// verdict is what the condition says. Without a status, there is none.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	// pending: it stays as it is until a lane has looked.
	pending bool
}

func (v verdict) set(kc *v1alpha1.KubernetesCluster) {
	conditions.Set(kc, &metav1.Condition{
		Type: v1alpha1.CredentialsCopiedCondition, Status: v.status, Reason: v.reason, Message: v.message,
	})
}

// judge returns what the condition of a KubernetesCluster says.
func (r *Reconciler) judge(kc *v1alpha1.KubernetesCluster) verdict {
	switch {
	case kc.IsSeed() && !r.isSeed(kc), !kc.IsSeed() && (!r.ToNamespaces || kc.Namespace == r.SystemNamespace):
		return verdict{}
	case !kc.IsSeed():
		return r.local.judge(kc.Namespace)
	case kc.Spec.Paused:
		return verdict{metav1.ConditionUnknown, v1alpha1.SuspendedReason, "spec.paused is set: copies stay as they are", false}
	}
	key := client.ObjectKeyFromObject(kc)
	state, known := r.Clusters.State(key)
	switch l := r.seeds.Get(key); {
	case l != nil && l.cluster.Reachable() == nil:
		return l.judge(r.SystemNamespace)
	case known && state.UID == r.Clusters.Local().UID(), state.Yields != nil:
		return verdict{} // it is the hub itself, or gets its copies under another name
	case !known || !state.Contacted:
		return verdict{pending: true}
	case l == nil && state.Engaged && state.Reachable:
		return verdict{pending: true}
	default:
		return verdict{metav1.ConditionFalse, v1alpha1.ClusterUnreachableReason,
			"the cluster cannot be used: copies stay as they are until it can, see the condition " + v1alpha1.ReadyCondition, false}
	}
}

// judge returns what the last look of a lane says about the copies in one namespace.
func (l *lane) judge(namespace string) verdict {
	found := l.found()
	switch {
	case found == nil:
		return verdict{pending: true}
	case len(found.problems[namespace]) > 0:
		return verdict{metav1.ConditionFalse, v1alpha1.CopyFailedReason, excerpt.Texts(found.problems[namespace], "; ", shown), false}
	case found.err != nil:
		return verdict{metav1.ConditionFalse, v1alpha1.CopyFailedReason, found.err.Error(), false}
	default:
		return verdict{metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: %d", namespace, found.copies[namespace]), false}
	}
}
