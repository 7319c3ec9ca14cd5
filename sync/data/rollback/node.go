package rollback

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selectedNode is how the scheduler tells a provisioner where a volume is needed.
const selectedNode = "volume.kubernetes.io/selected-node"

// Choose has the volume of a claim provisioned that waits for its first consumer: what the scheduler
// would do for a Pod. No Pod is needed for that, and none could be scheduled that is allowed everywhere. Other claims, and
// those for which a Node was selected, stay as they are.
func (v *Volumes) Choose(ctx context.Context, claim *corev1.PersistentVolumeClaim, node func(context.Context) (string, error)) error {
	if claim.Annotations[selectedNode] != "" || ptr.Deref(claim.Spec.StorageClassName, "") == "" {
		return nil
	}
	class := &storagev1.StorageClass{}
	if err := v.Client.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, class); err != nil {
		return fmt.Errorf("get StorageClass %q: %w", *claim.Spec.StorageClassName, err)
	}
	if ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	name, err := node(ctx)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, selectedNode, name)
	if err := v.Client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("select Node %q for PersistentVolumeClaim %q: %w", name, claim.Name, err)
	}
	return nil
}

// NodeOf returns the Node that a volume like this one is to be made for: the one that was selected for
// the claim that the volume belongs to, or any other that can use the volume. volume and claim may be
// empty.
func (v *Volumes) NodeOf(ctx context.Context, namespace, claim, volume string) (string, error) {
	if found, err := v.claim(ctx, client.ObjectKey{Namespace: namespace, Name: claim}); err != nil {
		return "", err
	} else if found != nil && found.Annotations[selectedNode] != "" {
		err := v.Client.Get(ctx, client.ObjectKey{Name: found.Annotations[selectedNode]}, &corev1.Node{})
		if err == nil || !apierrors.IsNotFound(err) {
			return found.Annotations[selectedNode], err
		}
	}
	pv := &corev1.PersistentVolume{}
	if volume != "" {
		if err := v.Client.Get(ctx, client.ObjectKey{Name: volume}, pv); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("get PersistentVolume %q: %w", volume, err)
		}
	}
	nodes := &corev1.NodeList{}
	if err := v.Client.List(ctx, nodes); err != nil {
		return "", fmt.Errorf("list Nodes: %w", err)
	}
	usable := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return !reaches(&n, pv.Spec.NodeAffinity) })
	if len(usable) == 0 {
		return "", fmt.Errorf("no Node can use a volume like PersistentVolume %q", volume)
	}
	return slices.MinFunc(usable, func(a, b corev1.Node) int {
		return cmp.Or(cmp.Compare(unfit(&a), unfit(&b)), cmp.Compare(a.Name, b.Name))
	}).Name, nil
}

// unfit is higher for Nodes on which no Pod would be started.
func unfit(n *corev1.Node) int {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case n.DeletionTimestamp != nil || !ready:
		return 2
	case n.Spec.Unschedulable:
		return 1
	}
	return 0
}

// reaches reports whether a Node can use a volume: one of the terms has to match.
func reaches(n *corev1.Node, affinity *corev1.VolumeNodeAffinity) bool {
	if affinity == nil || affinity.Required == nil {
		return true
	}
	name := fields.Set{"metadata.name": n.Name}
	return slices.ContainsFunc(affinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			all(t.MatchExpressions, labels.Set(n.Labels)) && all(t.MatchFields, labels.Set(name))
	})
}

// operators are those of labels by their names in Nodes' selectors.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:           selection.In,
	corev1.NodeSelectorOpNotIn:        selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan,
	corev1.NodeSelectorOpLt:           selection.LessThan,
}

func all(requirements []corev1.NodeSelectorRequirement, set labels.Set) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		return err != nil || !requirement.Matches(set)
	})
}
