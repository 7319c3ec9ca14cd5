package sourcecredential

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

// shown is how many problems a message names.
const shown = 5

// describe says what is wrong with a copy, and what to do.
func (c *copier) describe(p manifest.Problem) string {
	switch p.Reason {
	case apply.ReasonConflict:
		return fmt.Sprintf("Secret %s/%s exists and is not a copy of Secret %s/%s of this hub: delete it, or rename the one of this hub",
			p.ID.Namespace, p.ID.Name, c.r.SystemNamespace, p.ID.Name)
	case apply.ReasonNamespaceNotFound:
		return fmt.Sprintf("namespace %s does not exist: create it", p.ID.Namespace)
	default:
		return p.Error()
	}
}

// wakeClusters enqueues the KubernetesClusters whose condition may change.
func (c *copier) wakeClusters() {
	if !c.isHub() {
		c.r.wake(c.seed)
		return
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := c.r.Client.List(c.cluster.Context(), list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.Log.WithName("sourcecredential").Error(err, "list clusters")
		return
	}
	for i := range list.Items {
		if kc := &list.Items[i]; !kc.IsSeed() {
			c.r.wake(client.ObjectKeyFromObject(kc))
		}
	}
}

// verdict is what the condition says. Without a status, there is none.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	// pending: it stays as it is until everything that should be copied has been.
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
	switch c := r.seeds.Get(key); {
	case c != nil && c.cluster.Reachable() == nil:
		return c.judge(r.SystemNamespace)
	case known && state.UID == r.Clusters.Local().UID(), state.Yields != nil:
		return verdict{} // it is the hub itself, or gets its copies under another name
	case !known || !state.Contacted:
		return verdict{pending: true}
	case c == nil && state.Engaged && state.Reachable:
		return verdict{pending: true}
	default:
		return verdict{metav1.ConditionFalse, v1alpha1.ClusterUnreachableReason,
			"the cluster cannot be used: copies stay as they are until it can, see the condition " + v1alpha1.ReadyCondition, false}
	}
}

// judge returns what is to be said about the copies in one namespace.
func (c *copier) judge(namespace string) verdict {
	plan := c.plan.Load()
	if plan == nil {
		return verdict{pending: true}
	}
	var err error
	var problems []string
	copies, results := 0, c.Results()
	for name, wanted := range *plan {
		if results[name].Value.attempted != wanted.digest() {
			return verdict{pending: true}
		}
		if slices.Contains(wanted.namespaces, namespace) {
			copies++
		}
	}
	for _, got := range results {
		err = cmp.Or(got.Value.result.Err, err)
		for _, p := range got.Value.result.Problems {
			if p.ID.Namespace != namespace {
				continue
			}
			problems = append(problems, c.describe(p))
			if !p.Removal {
				copies--
			}
		}
	}
	slices.Sort(problems)
	switch {
	case len(problems) > 0:
		return verdict{metav1.ConditionFalse, v1alpha1.CopyFailedReason, excerpt.Texts(problems, "; ", shown), false}
	case err != nil:
		return verdict{metav1.ConditionFalse, v1alpha1.CopyFailedReason, err.Error(), false}
	default:
		return verdict{metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: %d", namespace, copies), false}
	}
}
