package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

// writer carries out a plan, or has the API server try it.
type writer struct {
	env    *cli.Env
	client client.Client
	dryRun bool
}

// write writes the Application first: a user who may not own the objects is refused there,
// before anything has happened. After an error, running the command again does what is left.
func (w writer) write(ctx context.Context, p *plan) error {
	tried := ""
	if w.dryRun {
		tried = " (dry run)"
	}
	if p.writes() {
		done, err := w.application(ctx, p)
		if err != nil {
			return fmt.Errorf("write %s: %w", nameOf(p.wanted), err)
		}
		fmt.Fprintf(w.env.Out, "%s %s%s\n", nameOf(p.wanted), done, tried)
	}
	objects := p.of(annotate)
	failed := w.annotateAll(ctx, p, objects)
	fmt.Fprintf(w.env.Out, "%s annotated%s\n", output.Count(len(objects)-failed, "object"), tried)
	if failed > 0 {
		return fmt.Errorf("%s could not be annotated: fix that and run the command again", output.Count(failed, "object"))
	}
	return nil
}

// application creates the Application, or patches the existing one at the version that was read.
func (w writer) application(ctx context.Context, p *plan) (done string, err error) {
	if p.existing != nil {
		return "changed", w.change(ctx, p)
	}
	options := []client.CreateOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	err = w.client.Create(ctx, p.wanted, options...)
	if apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("it was created concurrently by another client; %w", errAgain)
	}
	return "created", err
}

// change patches the Application that is there. A newer version is no obstacle if it differs in its
// status or finalizers alone, which Waybill itself writes at any time.
func (w writer) change(ctx context.Context, p *plan) error {
	existing := p.existing.DeepCopy()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch := client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})
		err := w.client.Patch(ctx, p.wanted, patch, w.patchOptions()...)
		if !apierrors.IsConflict(err) {
			return err
		}
		newer := &v1alpha1.Application{}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(existing), newer); err != nil {
			return err
		}
		if !sameIntent(p.existing, newer) {
			return fmt.Errorf("it has been modified meanwhile; %w", errAgain)
		}
		existing.ResourceVersion = newer.ResourceVersion
		return err
	})
}

// sameIntent reports whether two versions of an Application are the same in all that users write.
func sameIntent(a, b *v1alpha1.Application) bool {
	return a.UID == b.UID && a.Generation == b.Generation && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// errAgain says what to do when something changed while the user was asked.
var errAgain = errors.New("nothing was written: run the command again to see what is to be done now")

func (w writer) patchOptions() []client.PatchOption {
	options := []client.PatchOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	return options
}

// annotateAll annotates objects concurrently, and reports those that could not be annotated.
func (w writer) annotateAll(ctx context.Context, p *plan, objects []decision) (failed int) {
	errs := make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(requests)
	for i, v := range objects {
		group.Go(func() error {
			errs[i] = w.annotate(ctx, p, v)
			return nil
		})
	}
	_ = group.Wait() // one that fails does not block the others
	for i, err := range errs {
		if err != nil {
			failed++
			w.env.Warnf("annotate %s: %s", objects[i], err)
		}
	}
	return failed
}

// annotate annotates exactly the object that was read, not one that has taken its name since. A
// concurrent change is no obstacle, unless the plan for the object would now be another. An object
// that has the annotation by now needs nothing: where the Application controller runs, it annotates
// the components of a new Application too.
func (w writer) annotate(ctx context.Context, p *plan, v decision) error {
	object := v.object.DeepCopy()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := w.annotateVersion(ctx, v.GroupVersionKind, object, p.wanted.Name)
		if !apierrors.IsConflict(err) {
			return err
		}
		object.SetGroupVersionKind(v.GroupVersionKind)
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		switch now := p.decideAnew(v, object); {
		case now.action == belongs:
			return nil
		case now.action != v.action || now.reason != v.reason:
			return errors.New("it has been modified meanwhile, and is left as it is")
		}
		return err
	})
}

// annotateVersion annotates one version of an object; the error is a conflict if there is a newer
// one.
func (w writer) annotateVersion(ctx context.Context, kind schema.GroupVersionKind, version *metav1.PartialObjectMetadata, app string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": version.UID, "resourceVersion": version.ResourceVersion,
		"annotations": map[string]string{v1alpha1.ApplicationAnnotation: app},
	}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	object.Namespace, object.Name = version.Namespace, version.Name
	return w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), w.patchOptions()...)
}
