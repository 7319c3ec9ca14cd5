package release

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"waybill.dev/waybill/sync/manifest"
)

// Uninstalled describes what an uninstall deleted and what it left.
type Uninstalled struct {
	// Objects that were to be deleted. Some may linger until their finalizers are done.
	Objects []manifest.ID
	// Kept are objects that stay, and why.
	Kept []Kept
	// Altered are the revisions that are not as noted, if the newest is one of them. Of what they and
	// the caller named, only what carries our own mark was deleted, and no delete hooks were run.
	Altered []int
}

// Uninstall removes a release, with its record, and runs its delete hooks. It needs neither chart
// nor values. installed is what the caller noted as the objects of the release: if there is no
// record to go by, because it is gone, altered, or another owner's, those of them that carry our
// own mark are deleted. It is no error if there is nothing of ours to remove. An error names what
// could not be deleted; the record stays, so that the next call goes on.
func (e *Engine) Uninstall(ctx context.Context, t Target, id Identity, o Options, installed []manifest.ID) (Uninstalled, error) {
	observed, err := e.observeOurs(ctx, t, id)
	reason := ReasonOf(err)
	none := reason == ReasonGone || reason == ReasonConflict
	switch {
	case none && len(installed) == 0:
		return Uninstalled{}, nil
	case none:
		observed = Observed{}
	case err != nil:
		return Uninstalled{}, err
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id, Options: o}, observed: observed}
	return inSession(ctx, j, func(ctx context.Context, s *session) (Uninstalled, error) {
		left, err := s.uninstall(ctx, installed)
		return left, s.failed("uninstall", err)
	})
}

// finishUninstall finishes an interrupted uninstall.
func finishUninstall(ctx context.Context, s *session, _ Decision) (Result, error) {
	_, err := s.uninstall(ctx, nil)
	return Result{}, s.failed("uninstall", err)
}

// uninstall runs Helm's action, which looks only at the newest revision. If that one failed, what
// the others before it, down to the last good one, have beyond it is deleted first; if it is
// altered, all of it is. Delete hooks are run if the newest is as noted.
func (s *session) uninstall(ctx context.Context, installed []manifest.ID) (Uninstalled, error) {
	var left Uninstalled
	revisions, err := s.standing()
	if err != nil {
		return left, err
	}
	var helms kube.ResourceList // what Helm's action deletes
	for i, r := range revisions {
		had, err := s.had(r)
		if err != nil {
			return left, err
		}
		if i == 0 && had.vouched {
			helms = had.objects
			left.add(helms)
			continue
		}
		beyond := had.objects.Difference(helms)
		left.add(beyond)
		if err := s.client.removeAll(reversed(beyond), had.vouched); err != nil {
			return left, err
		}
	}
	known := false
	if len(revisions) > 0 {
		if _, err = s.current(); err != nil && ReasonOf(err) != ReasonAltered {
			return left, err
		}
		known = err == nil
	}
	if !known {
		left.Altered = s.store.allAltered()
		if len(revisions) > 0 && !slices.Contains(left.Altered, revisions[0]) {
			left.Altered = append(left.Altered, revisions[0]) // genuine, but not what was noted last
		}
		swept, err := s.sweep(left.without(installed))
		left.add(swept)
		if err != nil {
			return left, err
		}
	}
	if len(revisions) > 0 {
		err = s.runUninstall(ctx, known)
	}
	left.Kept = append(left.Kept, s.client.kept...)
	return left, err
}

// sweep deletes what was installed if there is no record to go by. Objects of a kind that the
// cluster does not know are gone.
func (s *session) sweep(installed []manifest.ID) (kube.ResourceList, error) {
	var list kube.ResourceList
	for _, id := range installed {
		mapping, err := s.target.Mapper().RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find resource of %s: %w", id, err)
		}
		list = append(list, &resource.Info{Mapping: mapping, Namespace: id.Namespace, Name: id.Name, Object: &unstructured.Unstructured{}})
	}
	return list, s.client.removeAll(reversed(list), false)
}

func (s *session) runUninstall(ctx context.Context, hooks bool) error {
	cfg, err := s.configuration()
	if err != nil {
		return err
	}
	run := action.NewUninstall(cfg)
	run.IgnoreNotFound = true
	run.DisableHooks = s.desired.Options.DisableHooks || !hooks
	run.Timeout = s.desired.Options.timeout()
	if _, err = run.Run(s.id.Name); err != nil {
		return err
	}
	return ctx.Err()
}

// standing returns the revisions whose objects may be in the cluster, newest first: only the newest
// if it is deployed, else all back to the last good one. An altered one says nothing about those
// before it.
func (s *session) standing() ([]int, error) {
	var found []int
	for _, r := range slices.Backward(s.observed.Revisions) {
		if _, err := s.store.Get(s.store.key(r.Number)); err != nil {
			return nil, err
		}
		found = append(found, r.Number)
		if r.good() && !s.store.isAltered(r.Number) || len(found) == maxLeftovers {
			break
		}
	}
	return found, nil
}

// without returns the objects of installed that u does not contain yet.
func (u *Uninstalled) without(installed []manifest.ID) []manifest.ID {
	noted := make(map[manifest.ID]bool, len(u.Objects))
	for _, id := range u.Objects {
		noted[id.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(installed), func(id manifest.ID) bool { return noted[id.Key()] })
}

// add records the objects to be deleted, and as kept those that the chart wants kept: Helm does not
// touch them.
func (u *Uninstalled) add(list kube.ResourceList) {
	for _, info := range list {
		o, err := object(info)
		if err == nil && o.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy {
			u.Kept = append(u.Kept, Kept{ID: idOf(info), Why: keepWhy})
			continue
		}
		u.Objects = append(u.Objects, idOf(info))
	}
}
