package release

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Drift is how objects of a release differed from its manifest.
type Drift struct {
	// Objects that differed; those that were as they should be are left out.
	Objects []ObjectDrift
}

// ObjectDrift is how one object differed.
type ObjectDrift struct {
	ID manifest.ID
	// Missing: the object was gone.
	Missing bool
	// Paths of the fields that differed, without their values.
	Paths []string
}

// String returns one line for an event.
func (o ObjectDrift) String() string {
	if o.Missing {
		return fmt.Sprintf("%s was missing", o.ID)
	}
	return fmt.Sprintf("%s differed in %s", o.ID, strings.Join(o.Paths, ", "))
}

// Correct brings objects of the deployed revision back to what its manifest says, without creating
// another revision: it creates what is missing, patches what differs, and leaves what others have
// added. If dirty is empty, it checks all objects. It returns what differed, even if not all of it
// could be corrected. There is nothing to go by, and nothing is changed, if the release is gone
// (ReasonGone), or the record of its newest revision differs from what was noted (ReasonAltered). What
// Identity.Held says is held is left as it is, missing or not. If
// that revision failed (ReasonNotDeployed), Correct puts back only what is missing, and only objects
// that the last good revision contains too: they are wanted whether the next action goes forward or
// back.
func (e *Engine) Correct(ctx context.Context, t Target, id Identity, dirty []manifest.ID) (Drift, error) {
	return e.drift(ctx, t, id, dirty, nil)
}

// Detect returns what Correct would, and changes nothing: each patch is sent as a dry run.
func (e *Engine) Detect(ctx context.Context, t Target, id Identity, dirty []manifest.ID) (Drift, error) {
	return e.drift(ctx, t, id, dirty, []string{metav1.DryRunAll})
}

func (e *Engine) drift(ctx context.Context, t Target, id Identity, dirty []manifest.ID, dryRun []string) (Drift, error) {
	observed, err := e.observeOurs(ctx, t, id)
	if err != nil {
		return Drift{}, err
	}
	notDeployed := observed.deployed(id)
	if ReasonOf(notDeployed) == ReasonGone {
		return Drift{}, notDeployed
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id}, observed: observed}
	return inSession(ctx, j, func(_ context.Context, s *session) (Drift, error) {
		if notDeployed != nil {
			drift, err := s.putBack(dirty, dryRun)
			return drift, cmp.Or(s.failed("correct", err), notDeployed)
		}
		drift, err := s.correct(dirty, dryRun)
		return drift, s.failed("correct", err)
	})
}

func (s *session) correct(dirty []manifest.ID, dryRun []string) (Drift, error) {
	current, err := s.current()
	if err != nil {
		return Drift{}, err
	}
	list, err := s.build(current)
	if err != nil {
		return Drift{}, err
	}
	s.client.comparesWith(current)
	return s.client.compare(list, dirty, func(info *resource.Info) (*ObjectDrift, error) {
		return s.client.correct(info, dryRun)
	})
}

// putBack creates what is missing of what the newest revision, which failed, and the last good one
// have in common, as the latter says. It does nothing if either differs from what Waybill recorded.
func (s *session) putBack(dirty []manifest.ID, dryRun []string) (Drift, error) {
	newest, err := s.current()
	if err != nil {
		return Drift{}, ignoreAltered(err)
	}
	number, err := s.fallback()
	if err != nil || number == 0 {
		return Drift{}, ignoreAltered(err)
	}
	wanted, err := s.build(newest)
	if err != nil {
		return Drift{}, err
	}
	good, err := s.had(number)
	if err != nil {
		return Drift{}, err
	}
	s.client.comparesWith(newest)
	return s.client.compare(good.objects.Intersect(wanted), dirty, func(info *resource.Info) (*ObjectDrift, error) {
		missing, _, err := s.client.putBack(info, dryRun)
		return missing, err
	})
}

func ignoreAltered(err error) error {
	if ReasonOf(err) == ReasonAltered {
		return nil
	}
	return err
}

// compare calls fix for the dirty objects of the list, or for all of it if none is dirty, and returns
// what differed.
func (c *client) compare(list kube.ResourceList, dirty []manifest.ID, fix func(*resource.Info) (*ObjectDrift, error)) (Drift, error) {
	chosen := make(map[manifest.ID]bool, len(dirty))
	for _, id := range dirty {
		chosen[id.Key()] = true
	}
	var drift Drift
	err := c.batches(list, func(info *resource.Info) error {
		if len(dirty) > 0 && !chosen[idOf(info).Key()] {
			return nil
		}
		found, err := fix(info)
		c.mu.Lock()
		defer c.mu.Unlock()
		if found != nil {
			drift.Objects = append(drift.Objects, *found)
		}
		return err
	})
	slices.SortFunc(drift.Objects, func(a, b ObjectDrift) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return drift, c.fail(err)
}

// comparesWith notes the revision that objects are about to be compared with.
func (c *client) comparesWith(r *helmrelease.Release) {
	if r.Info != nil {
		c.since = r.Info.LastDeployed.Time
	}
}

// held reports whether an object is left as it is; live is nil if it is missing.
func (c *client) held(info *resource.Info, live *unstructured.Unstructured) (bool, error) {
	if c.id.Held == nil {
		return false, nil
	}
	wanted, err := object(info)
	if err != nil || wanted.GetAnnotations()[v1alpha1.HoldAnnotation] == v1alpha1.HoldDisabled {
		return false, err
	}
	held, err := c.id.Held(c.ctx, idOf(info), live, c.since)
	return held, c.about("find who holds", info, err)
}

// putBack creates an object if it is missing; otherwise it returns the object as it is. Of one that is held,
// it returns nothing.
func (c *client) putBack(info *resource.Info, dryRun []string) (missing *ObjectDrift, live *unstructured.Unstructured, err error) {
	if err := c.mark(info); err != nil {
		return nil, nil, err
	}
	live, err = c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return nil, nil, c.about("read", info, err)
	}
	if gone {
		live = nil
	}
	if held, err := c.held(info, live); held || err != nil {
		return nil, nil, err
	}
	if !gone {
		return nil, live, nil
	}
	missing = &ObjectDrift{ID: idOf(info), Missing: true}
	if len(dryRun) > 0 {
		return missing, nil, nil
	}
	return missing, nil, c.create(info)
}

// correct corrects one object and returns how it differed, or nil if it did not.
func (c *client) correct(info *resource.Info, dryRun []string) (*ObjectDrift, error) {
	missing, live, err := c.putBack(info, dryRun)
	if missing != nil || live == nil || err != nil {
		return missing, err
	}
	patch, patched, err := c.bring(info, info, live, metav1.PatchOptions{DryRun: dryRun})
	if err != nil || patch.empty() {
		return nil, c.about("patch", info, err)
	}
	paths, err := changedPaths(live, patched, patch)
	if err != nil || len(paths) == 0 {
		return nil, c.about("compare", info, err)
	}
	return &ObjectDrift{ID: idOf(info), Paths: paths}, nil
}

// mark adds what Helm adds to every object that it creates; manifests do not contain it.
func (c *client) mark(info *resource.Info) error {
	o, err := object(info)
	if err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[releaseNameAnnotation] = c.id.Name
	annotations[releaseNamespaceAnnotation] = c.id.Namespace
	o.SetAnnotations(annotations)
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedByLabel] = managedByHelm
	o.SetLabels(labels)
	return nil
}

// maxPaths is how many fields of one object are named.
const maxPaths = 10

// changedPaths returns the paths of the fields that a patch has changed, except the status and the
// API server's own bookkeeping. What others changed between the two reads is no drift.
func changedPaths(live, patched *unstructured.Unstructured, patch patchData) ([]string, error) {
	var sent map[string]any
	if err := json.Unmarshal(patch.data, &sent); err != nil {
		return nil, fmt.Errorf("decode patch: %w", err)
	}
	before, after := live.DeepCopy(), patched.DeepCopy()
	for _, o := range []*unstructured.Unstructured{before, after} {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		delete(o.Object, "status")
	}
	paths := differing("", touched(before.Object, sent), touched(after.Object, sent), nil)
	if len(paths) > maxPaths {
		paths = append(paths[:maxPaths], fmt.Sprintf("and %d more", len(paths)-maxPaths))
	}
	return paths, nil
}
