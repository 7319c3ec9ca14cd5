package adopt

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/output"
)

// writer carries out a plan, or has the API server try it.
type writer struct {
	env    *cli.Env
	client client.Client
	dryRun bool
}

// write writes the Application first: a user who may not own the objects is refused there (C35),
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
	failed := w.annotateAll(ctx, objects, p.wanted.Name)
	fmt.Fprintf(w.env.Out, "%s annotated%s\n", output.Count(len(objects)-failed, "object"), tried)
	if failed > 0 {
		return fmt.Errorf("%s could not be annotated: run the command again when that is put right", output.Count(failed, "object"))
	}
	return nil
}

func (w writer) application(ctx context.Context, p *plan) (done string, err error) {
	if p.there != nil {
		options := []client.UpdateOption{client.FieldOwner(cli.FieldManager)}
		if w.dryRun {
			options = append(options, client.DryRunAll)
		}
		return "changed", w.client.Update(ctx, p.wanted, options...)
	}
	options := []client.CreateOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	return "created", w.client.Create(ctx, p.wanted, options...)
}

// annotateAll annotates objects concurrently, and reports those that could not be annotated.
func (w writer) annotateAll(ctx context.Context, objects []verdict, app string) (failed int) {
	errs := make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(requests)
	for i, v := range objects {
		group.Go(func() error {
			errs[i] = w.annotate(ctx, v, app)
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

// annotate annotates exactly the object that was looked at, not one that has taken its name since.
func (w writer) annotate(ctx context.Context, v verdict, app string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": v.object.UID, "annotations": map[string]string{v1alpha1.ApplicationAnnotation: app},
	}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v.GroupVersionKind)
	object.Namespace, object.Name = v.object.Namespace, v.object.Name
	options := []client.PatchOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	return w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), options...)
}
