package provide

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// maxRecorded bounds what a status says of one definition.
const maxRecorded = 256

var (
	// errForeign means that there is an installation of the name that Waybill did not create.
	errForeign = errors.New("an installation of that name exists already, which Waybill did not create: delete or rename it")
	// errContested means that an installation is changed again and again right after it was corrected.
	errContested = errors.New("another field manager keeps changing or deleting it; corrections back off")
	// errFull means that no more can be recorded.
	errFull = fmt.Errorf("more than %d definitions with default or enforced are offered to the cluster; the others are not installed", v1alpha1.MaxProvidedDefinitions)
)

// provide brings the installations of definitions with default or enforced to what is wanted.
func (c *provided) provide(ctx context.Context, s *scope) error {
	definitions := &v1alpha1.ApplicationDefinitionList{}
	if err := c.p.Hub.List(ctx, definitions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list definitions: %w", err)
	}
	live, err := c.installations(ctx)
	if err != nil {
		return err
	}
	records := map[string]v1alpha1.ProvidedDefinition{}
	for _, record := range s.kc.Status.Provided {
		records[record.Name] = record
	}
	exist := map[string]bool{}
	for _, d := range inOrder(definitions.Items) {
		record, recorded := records[d.Name]
		recorded = recorded && record.UID == d.UID
		mode := modeOf(d, s.kc)
		exist[d.Name] = true
		if mode == "" && !recorded && live[d.Name] == nil {
			continue
		}
		settled := recorded && record.Problem == "" || c.made[d.Name] == d.UID
		if mode != "" && !recorded && len(s.report.Provided) >= v1alpha1.MaxProvidedDefinitions {
			s.report.Overflow = errFull.Error()
			continue
		}
		problem := c.settle(ctx, s, d, decide(c.observe(d, mode, settled, live[d.Name])))
		if mode == "" && !recorded {
			continue
		}
		s.report.Provided = append(s.report.Provided, v1alpha1.ProvidedDefinition{Name: d.Name, UID: d.UID, Problem: text(problem)})
		if mode == v1alpha1.ProvidedByDefault && problem == nil {
			c.made[d.Name] = d.UID
		}
	}
	slices.SortFunc(s.report.Provided, func(a, b v1alpha1.ProvidedDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return c.release(ctx, s, live, exist)
}

// inOrder returns definitions by name, each after those that it requires. An installation waits for those that it
// requires in the version that they want: what is to change together has to be written in that order.
func inOrder(definitions []v1alpha1.ApplicationDefinition) []*v1alpha1.ApplicationDefinition {
	slices.SortFunc(definitions, func(a, b v1alpha1.ApplicationDefinition) int { return cmp.Compare(a.Name, b.Name) })
	left := make(map[string]*v1alpha1.ApplicationDefinition, len(definitions))
	for i := range definitions {
		left[definitions[i].Name] = &definitions[i]
	}
	ordered := make([]*v1alpha1.ApplicationDefinition, 0, len(definitions))
	var place func(name string)
	place = func(name string) {
		d := left[name]
		if d == nil {
			return // it has its place, or is about to: what requires itself has no order
		}
		delete(left, name)
		for _, requirement := range d.Spec.Requires {
			place(requirement.Name)
		}
		ordered = append(ordered, d)
	}
	for i := range definitions {
		place(definitions[i].Name)
	}
	return ordered
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return excerpt.Of(excerpt.Line(err.Error()), maxRecorded)
}

// modeOf returns how the cluster is given an installation of a definition, as a value of ProvidedLabel; empty
// if it is not.
func modeOf(d *v1alpha1.ApplicationDefinition, kc *v1alpha1.KubernetesCluster) string {
	switch {
	case !d.DeletionTimestamp.IsZero(), !d.InCatalog(), !validation.OfferedTo(d, kc):
		return ""
	case d.Spec.Enforced:
		return v1alpha1.ProvidedEnforced
	case d.Spec.Default:
		return v1alpha1.ProvidedByDefault
	}
	return ""
}

// installations returns those of the system namespace by name, from a cache.
func (c *provided) installations(ctx context.Context) (map[string]*v1alpha1.ApplicationInstallation, error) {
	list := &v1alpha1.ApplicationInstallationList{}
	if err := c.cluster.Client().List(ctx, list, client.InNamespace(c.p.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	byName := make(map[string]*v1alpha1.ApplicationInstallation, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName, nil
}

// release frees what was enforced of definitions that do not exist any more.
func (c *provided) release(ctx context.Context, s *scope, live map[string]*v1alpha1.ApplicationInstallation, exist map[string]bool) error {
	for name, inst := range live {
		if !exist[name] && inst.Labels[v1alpha1.ProvidedLabel] == v1alpha1.ProvidedEnforced && inst.DeletionTimestamp.IsZero() {
			if err := c.try(s, "release/"+name, inst.ResourceVersion, func() error { return c.free(ctx, inst) }); err != nil {
				return fmt.Errorf("free installation %s: %w", name, err)
			}
		}
	}
	for name := range c.made {
		if !exist[name] {
			delete(c.made, name)
		}
	}
	return nil
}

// action is what is done about the installation of one definition.
type action int

const (
	// nothing: it is as it is to be.
	nothing action = iota
	// create: there is none.
	create
	// put: it is not as the definition wants it.
	put
	// free: it is enforced no longer.
	free
	// yield: there is one of that name that is not ours.
	yield
	// await: it is being deleted.
	await
)

// observed is what decide goes by.
type observed struct {
	// mode is how the cluster is given the definition, as of modeOf.
	mode string
	// settled is true if the cluster was given it before.
	settled bool
	// live is the installation of that name; nil for none.
	live *v1alpha1.ApplicationInstallation
	// ours is true if Waybill created it.
	ours bool
	// same is true if it is as the definition, which is enforced, wants it.
	same bool
}

// observe returns what is known of the installation of a definition. One that was seen with our mark is ours,
// also if the mark was removed since.
func (c *provided) observe(d *v1alpha1.ApplicationDefinition, mode string, settled bool, live *v1alpha1.ApplicationInstallation) observed {
	o := observed{mode: mode, settled: settled, live: live}
	if live == nil {
		delete(c.marked, d.Name)
		return o
	}
	if live.Labels[v1alpha1.ProvidedLabel] != "" {
		c.marked[d.Name] = live.UID
	}
	o.ours, o.same = c.marked[d.Name] == live.UID, c.same(d, live)
	return o
}

// decide compares how a cluster is given a definition with the installation that it has.
func decide(o observed) action {
	switch {
	case o.mode == v1alpha1.ProvidedByDefault && o.settled && (o.live == nil || !o.live.DeletionTimestamp.IsZero()):
		return nothing
	case o.mode != "" && o.live == nil:
		return create
	case o.live == nil:
		return nothing
	case !o.live.DeletionTimestamp.IsZero():
		if o.mode == v1alpha1.ProvidedEnforced {
			return await
		}
		return nothing
	case o.mode != v1alpha1.ProvidedEnforced:
		if o.live.Labels[v1alpha1.ProvidedLabel] == v1alpha1.ProvidedEnforced {
			return free
		}
		return nothing
	case !o.ours:
		return yield
	case !o.same:
		return put
	}
	return nothing
}

// settle does what was decided about the installation of a definition.
func (c *provided) settle(ctx context.Context, s *scope, d *v1alpha1.ApplicationDefinition, what action) error {
	key, input := "definition/"+d.Name, fmt.Sprintf("%s/%d/%d", d.UID, d.Generation, what)
	wanted := c.wanted(d)
	switch what {
	case create, put:
		if version := wanted.Spec.ApplicationRef.Version; d.GetVersion(version) == nil {
			return fmt.Errorf("there is no version to install: every version is deprecated, and defaultVersion is not set")
		}
		if c.paused(d.Name, s.began) {
			return errContested
		}
		return c.try(s, key, input, func() error { return c.write(ctx, d, wanted, what) })
	case free:
		return c.try(s, key, input, func() error {
			live, err := c.read(ctx, d.Name)
			if err != nil || live == nil {
				return err
			}
			return c.free(ctx, live)
		})
	case yield:
		return errForeign
	case await:
		return errBeingDeleted
	}
	return nil
}

// paused reports whether the installation was corrected so often that it has to wait.
func (c *provided) paused(name string, now time.Time) bool {
	conflict := c.drift[name]
	return conflict != nil && conflict.Due().After(now)
}

// wanted returns the installation of a definition with default or enforced.
func (c *provided) wanted(d *v1alpha1.ApplicationDefinition) *v1alpha1.ApplicationInstallation {
	mode := v1alpha1.ProvidedByDefault
	if d.Spec.Enforced {
		mode = v1alpha1.ProvidedEnforced
	}
	target := d.Spec.DefaultNamespace.DeepCopy()
	if target == nil {
		target = &v1alpha1.TargetNamespace{Name: d.Name, Create: true}
	}
	return &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.p.SystemNamespace, Name: d.Name, Labels: map[string]string{v1alpha1.ProvidedLabel: mode},
		},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: d.Name, Version: validation.ProvidedVersion(d)},
			Namespace:      target,
			DeployOptions:  d.Spec.DefaultDeployOptions.DeepCopy(),
		},
	}
}

// written is an installation as it was written last: the API server may have filled in what was left out.
type written struct {
	uid        types.UID
	generation int64
	hash       string
}

func hashOf(spec *v1alpha1.ApplicationInstallationSpec) string {
	content, err := json.Marshal(spec)
	if err != nil {
		return "" // equal to no other
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// same reports whether an installation is as its definition, which is enforced, wants it. The namespace that
// it goes to cannot be changed, so that of a definition counts only while there is no installation.
func (c *provided) same(d *v1alpha1.ApplicationDefinition, live *v1alpha1.ApplicationInstallation) bool {
	if live == nil || live.Labels[v1alpha1.ProvidedLabel] != v1alpha1.ProvidedEnforced {
		return false
	}
	spec := c.specFor(d, live)
	last := c.written[d.Name]
	return last.uid == live.UID && last.generation == live.Generation && last.hash == hashOf(spec) || apiequality.Semantic.DeepEqual(&live.Spec, spec)
}

func (c *provided) specFor(d *v1alpha1.ApplicationDefinition, live *v1alpha1.ApplicationInstallation) *v1alpha1.ApplicationInstallationSpec {
	spec := &c.wanted(d).Spec
	if at := live.Spec.Namespace; at != nil && at.Name != spec.Namespace.Name {
		spec.Namespace = at.DeepCopy()
	}
	return spec
}

// read returns the installation of a definition, from a cache; nil if there is none.
func (c *provided) read(ctx context.Context, name string) (*v1alpha1.ApplicationInstallation, error) {
	live := &v1alpha1.ApplicationInstallation{}
	err := c.cluster.Client().Get(ctx, client.ObjectKey{Namespace: c.p.SystemNamespace, Name: name}, live)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return live, nil
}

// write creates the installation of a definition, or puts it right.
func (c *provided) write(ctx context.Context, d *v1alpha1.ApplicationDefinition, wanted *v1alpha1.ApplicationInstallation, what action) error {
	if what == create {
		err := c.create(ctx, wanted)
		if apierrors.IsAlreadyExists(err) {
			return nil // whose it is is decided when the watch shows it
		}
		if err != nil {
			return err
		}
		if d.Spec.Enforced {
			c.corrected(d.Name)
		}
		return nil
	}
	live, err := c.read(ctx, d.Name)
	if err != nil || live == nil || c.marked[d.Name] != live.UID {
		return err // an event follows
	}
	spec := c.specFor(d, live)
	live.Spec = *spec.DeepCopy()
	metav1.SetMetaDataLabel(&live.ObjectMeta, v1alpha1.ProvidedLabel, v1alpha1.ProvidedEnforced)
	if err := c.cluster.Client().Update(ctx, live, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return err
	}
	c.written[d.Name] = written{uid: live.UID, generation: live.Generation, hash: hashOf(spec)}
	c.corrected(d.Name)
	return nil
}

func (c *provided) corrected(name string) {
	if c.drift[name] == nil {
		c.drift[name] = &reconcile.DriftConflict{}
	}
	c.drift[name].Corrected(time.Now(), c.p.Backoff)
}

// free releases an installation that was enforced: it stays, and is the cluster's own from now on.
func (c *provided) free(ctx context.Context, inst *v1alpha1.ApplicationInstallation) error {
	freed := inst.DeepCopy()
	metav1.SetMetaDataLabel(&freed.ObjectMeta, v1alpha1.ProvidedLabel, v1alpha1.ProvidedByDefault)
	return c.cluster.Client().Patch(ctx, freed, client.MergeFrom(inst), client.FieldOwner(v1alpha1.FieldManager))
}

// leave deletes what is enforced in a cluster that is to be removed, since no other user may.
func (c *provided) leave(ctx context.Context, s *scope) error {
	if !c.going.Load() || c.cluster.Reachable() != nil {
		return nil
	}
	live, err := c.installations(ctx)
	if err != nil {
		return err
	}
	for name, inst := range live {
		if inst.Labels[v1alpha1.ProvidedLabel] != v1alpha1.ProvidedEnforced || !inst.DeletionTimestamp.IsZero() {
			continue
		}
		err := c.cluster.Client().Delete(ctx, inst.DeepCopy(), client.Preconditions{UID: &inst.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete installation %s: %w", name, err)
		}
	}
	c.next(s)
	return nil
}
