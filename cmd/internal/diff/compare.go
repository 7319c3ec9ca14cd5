package diff

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/manifest"
)

// Result is what would become of one object.
type Result struct {
	Cluster   string `json:"cluster"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    Action `json:"action"`
	// Note says why it is refused or kept.
	Note string `json:"note,omitempty"`
	// Diff is unified, with the data of Secrets hidden, and whatever else the one who asked hides.
	Diff string `json:"diff,omitempty"`

	id manifest.ID
}

// Comparison is what would change.
type Comparison struct {
	// Results are those of the objects that do not stay as they are, in an order that does not depend on who
	// answered first.
	Results []Result
	// Omitted is how many objects, sources or clusters could not be compared.
	Omitted int

	counts map[Action]int
}

// Count returns to how many objects something would happen.
func (c *Comparison) Count(action Action) int { return c.counts[action] }

// Same returns how many objects stay as they are.
func (c *Comparison) Same() int { return c.counts[noChange] + c.counts[Kept] }

func newComparison(changes []change, omitted int, hide Hide) *Comparison {
	sortChanges(changes)
	c := &Comparison{Results: []Result{}, Omitted: omitted, counts: map[Action]int{}}
	for _, one := range changes {
		action := one.action()
		c.counts[action]++
		if action == noChange {
			continue
		}
		c.Results = append(c.Results, Result{
			Cluster: one.cluster, Group: one.id.Group, Kind: one.id.Kind, Namespace: one.id.Namespace, Name: one.id.Name,
			Action: action, Note: one.note, Diff: one.unified(hide), id: one.id,
		})
	}
	return c
}

// Hide returns two states of an object as they are shown: copies without what is secret, in which values that differ still do.
// Either may be nil.
type Hide func(before, after *unstructured.Unstructured) (was, is *unstructured.Unstructured)

// View compares for a user, as they may see it.
type View struct {
	fleet.Place
	// Sources that are rendered; Own needs none.
	Sources *installation.Sources
	// Hide hides what is secret; nil for the data of Secrets alone.
	Hide Hide
}

func (v View) compared(changes []change, omitted int) *Comparison {
	hide := v.Hide
	if hide == nil {
		hide = mask.Pair
	}
	return newComparison(changes, omitted, hide)
}

// Object returns what a GitSync, an installation, a KubernetesApplication or one of its resources would change,
// as it is in the target, by dry runs.
func (v View) Object(ctx context.Context, object *unstructured.Unstructured) (*Comparison, error) {
	j := newJob(v.Place, v.Sources, &options{})
	changes, err := j.ofObject(ctx, object)
	if err != nil {
		return nil, err
	}
	return v.compared(changes, j.omitted), nil
}

// Own returns how one object changes, without what comes of that. Either may be nil.
func (v View) Own(before, after *unstructured.Unstructured) *Comparison {
	return v.compared([]change{own(v.Place, before, after)}, 0)
}

func own(at fleet.Place, before, after *unstructured.Unstructured) change {
	one := before
	if one == nil {
		one = after
	}
	return change{cluster: at.Target.Name(), id: manifest.Object{Unstructured: one}.ID(), before: before, after: after}
}

// Installation returns what becomes of an installation that the API server would store as after, and of
// what it installs. before is as it is stored; nil if it is not.
func (v View) Installation(ctx context.Context, before, after *unstructured.Unstructured) (*Comparison, error) {
	j := newJob(v.Place, v.Sources, &options{})
	changes, err := with(ctx, after, j.ofInstallation)
	if err != nil {
		return nil, err
	}
	return v.compared(append(changes, own(v.Place, before, after)), j.omitted), nil
}

// Uninstall returns what an uninstall of an installation would delete, itself included.
func (v View) Uninstall(ctx context.Context, object *unstructured.Unstructured) (*Comparison, error) {
	j := newJob(v.Place, v.Sources, &options{})
	changes, err := with(ctx, object, j.ofRemoval)
	if err != nil {
		return nil, err
	}
	return v.compared(append(changes, own(v.Place, object, nil)), j.omitted), nil
}

// PrintInstallation prints what Installation returns, as the command does. It returns ErrNegative if something
// would be refused.
func PrintInstallation(ctx context.Context, env *cli.Env, at fleet.Place, before, after *unstructured.Unstructured) error {
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	compared, err := View{Place: at, Sources: sources}.Installation(ctx, before, after)
	if err != nil {
		return err
	}
	err = compared.print(env, output.NewFormat())
	if errors.Is(err, cli.ErrNegative) && compared.Count(Refused) == 0 {
		return nil
	}
	return err
}
