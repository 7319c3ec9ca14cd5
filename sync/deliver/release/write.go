package release

import (
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// Helm puts these on every object of a release.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByHelm  = "Helm"

	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// Create implements Helm's kube.Interface.
func (c *client) Create(list kube.ResourceList) (*kube.Result, error) {
	if err := c.batches(list, c.create); err != nil {
		return nil, c.fail(err)
	}
	return &kube.Result{Created: list}, nil
}

func (c *client) create(info *resource.Info) error {
	o, err := object(info)
	if err != nil {
		return err
	}
	c.setGone(info, false)
	// A quota, for example, answers with conflicts.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		created, err := c.post(info, o, nil)
		if err != nil {
			return err
		}
		return c.wrote(info, created)
	})
	return c.about("create", info, err)
}

// post creates an object. A role that grants what its creator lacks takes the right to escalate, which may be
// limited to names: the name of what is posted is not part of the request, so such a role is applied instead.
// Without force, that takes nothing from a role that was created meanwhile.
func (c *client) post(info *resource.Info, o *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	to := c.resource(info)
	created, err := to.Create(c.ctx, o, metav1.CreateOptions{FieldManager: v1alpha1.HelmFieldManager, DryRun: dryRun})
	if !apierrors.IsForbidden(err) || info.Mapping.GroupVersionKind.Group != rbacv1.GroupName {
		return created, err
	}
	applied, again := to.Apply(c.ctx, info.Name, o, metav1.ApplyOptions{FieldManager: v1alpha1.HelmFieldManager, DryRun: dryRun})
	if again != nil {
		return nil, err
	}
	return applied, nil
}

// wrote records an object as the API server returned it.
func (c *client) wrote(info *resource.Info, live *unstructured.Unstructured) error {
	c.mu.Lock()
	c.written[idOf(info)] = live
	c.mu.Unlock()
	return info.Refresh(live, true)
}

// about adds to an error which object it is about; nil stays nil.
func (c *client) about(verb string, info *resource.Info, err error) error {
	if err == nil {
		return nil
	}
	return &objectError{verb: verb, id: idOf(info), err: err}
}

// Update implements Helm's kube.Interface: it creates what is missing, patches what differs, and
// deletes what original contains beyond target. Each object is read once, unless it is known to be
// untouched, and written at most once. Nothing is replaced by force.
func (c *client) Update(original, target kube.ResourceList, _ bool) (*kube.Result, error) {
	result := &kube.Result{}
	// Looked up beforehand: the lists may share objects, as where an install adopts some, and to
	// update one writes to it.
	before := make(map[*resource.Info]*resource.Info, len(target))
	for _, info := range target {
		before[info] = original.Get(info)
	}
	err := c.batches(target, func(info *resource.Info) error {
		created, err := c.update(before[info], info)
		c.mu.Lock()
		defer c.mu.Unlock()
		if created {
			result.Created = append(result.Created, info)
		} else {
			result.Updated = append(result.Updated, info)
		}
		return err
	})
	if err != nil {
		return result, c.fail(err)
	}
	obsolete := original.Difference(target)
	if len(obsolete) > 0 {
		if err := c.batches(reversed(obsolete), func(info *resource.Info) error { return c.remove(info, metav1.DeletePropagationBackground, true) }); err != nil {
			return result, c.fail(err)
		}
		result.Deleted = obsolete
	}
	return result, nil
}

// update brings one object to its target. before is the object in an earlier revision; nil if there
// is none.
func (c *client) update(before, info *resource.Info) (created bool, err error) {
	if done, err := c.change(before, info); done || err != nil {
		return false, c.about("patch", info, err)
	}
	live, err := c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, c.create(info)
	}
	if err != nil {
		return false, c.about("read", info, err)
	}
	if before == nil {
		before = info
	}
	patched, err := c.patch(before, info, live, metav1.PatchOptions{})
	if err != nil {
		return false, c.about("patch", info, err)
	}
	return false, c.wrote(info, patched)
}

// reversed returns list in the order of deletion: what was created last is deleted first.
func reversed(list kube.ResourceList) kube.ResourceList {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// Delete implements Helm's kube.Interface.
func (c *client) Delete(list kube.ResourceList) (*kube.Result, []error) {
	return c.DeleteWithPropagationPolicy(list, metav1.DeletePropagationBackground)
}

// DeleteWithPropagationPolicy implements Helm's kube.InterfaceDeletionPropagation. Objects that are
// already gone count as deleted.
func (c *client) DeleteWithPropagationPolicy(list kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	err := c.batches(list, func(info *resource.Info) error { return c.remove(info, policy, true) })
	if err != nil {
		return nil, []error{c.fail(err)}
	}
	return &kube.Result{Deleted: list}, nil
}

// removeAll deletes objects in the order of the list. vouched says whether their names are from a
// record that is as it was noted.
func (c *client) removeAll(list kube.ResourceList, vouched bool) error {
	return c.fail(c.batches(list, func(info *resource.Info) error {
		return c.remove(info, metav1.DeletePropagationBackground, vouched)
	}))
}

// remove deletes one object of the release, if it still is one: an object that asks to be kept, or
// belongs to another owner by now, is left and recorded as kept. Hooks carry no marks and are
// deleted by name, as in Helm.
func (c *client) remove(info *resource.Info, policy metav1.DeletionPropagation, vouched bool) error {
	options := metav1.DeleteOptions{PropagationPolicy: &policy}
	if !isHook(info) {
		live, err := c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
		if err != nil {
			return c.about("read", info, ignoreNotFound(err))
		}
		if why := c.keep(live, vouched); why != "" {
			c.mu.Lock()
			c.kept = append(c.kept, Kept{ID: idOf(info), Why: why})
			c.mu.Unlock()
			return nil
		}
		options.Preconditions = &metav1.Preconditions{UID: ptr.To(live.GetUID())}
	}
	err := c.resource(info).Delete(c.ctx, info.Name, options)
	c.setGone(info, apierrors.IsNotFound(err))
	if apierrors.IsConflict(err) {
		err = errors.New("was recreated while it was being deleted")
	}
	return c.about("delete", info, ignoreNotFound(err))
}

func (c *client) setGone(info *resource.Info, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[idOf(info)] = gone
}

func (c *client) isGone(info *resource.Info) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone[idOf(info)]
}

const keepWhy = "it has the annotation " + kube.ResourcePolicyAnno + ": " + kube.KeepPolicy

// keep returns why a live object must not be deleted with the release, or "" if it may be. Helm's
// annotations are enough of a mark if a record that is vouched for names the object; otherwise it
// must carry our own mark, which objects of a release of the same name that a user created by hand
// do not have.
func (c *client) keep(live *unstructured.Unstructured, vouched bool) string {
	annotations := live.GetAnnotations()
	if annotations[kube.ResourcePolicyAnno] == kube.KeepPolicy {
		return keepWhy
	}
	name, namespace := annotations[releaseNameAnnotation], annotations[releaseNamespaceAnnotation]
	named := name == c.id.Name && namespace == c.id.Namespace
	switch {
	case name != "" && !named:
		return fmt.Sprintf("it belongs to the release %s/%s now", namespace, name)
	case live.GetLabels()[v1alpha1.OwnerHashLabel] == c.id.OwnerHash:
		return ""
	case named && vouched:
		return ""
	default:
		return "it no longer has the labels and annotations of the release"
	}
}

func isHook(info *resource.Info) bool {
	o, err := object(info)
	return err == nil && o.GetAnnotations()[release.HookAnnotation] != ""
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
