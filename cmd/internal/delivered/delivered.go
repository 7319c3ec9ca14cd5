// Package delivered keeps commands from changing what somebody else delivers and would put back.
package delivered

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/apply"
)

// lookForFile is how long it may take to find the file that an installation is delivered from.
const lookForFile = 20 * time.Second

// Check returns an error if something else delivers an object of a cluster, and would undo what is
// changed by hand; with force, that is a warning. what names the object.
func Check(ctx context.Context, env *cli.Env, what string, object client.Object, force bool) error {
	owner, owned := apply.OwnerOf(object)
	if !owned {
		return nil
	}
	says := "git says"
	if owner.Kind != v1alpha1.GitSyncKind {
		says = "it wants"
	}
	message := fmt.Sprintf("%s is delivered by %s %s/%s, which puts back what %s", what, owner.Kind, owner.Namespace, owner.Name, says)
	if force {
		env.Warnf("%s", message)
		return nil
	}
	return fmt.Errorf("%s: change %s instead, or change it until then with --force", message, whereToChange(ctx, env, owner, object))
}

// whereToChange returns what to change instead of an object, as exactly as the user can see it.
func whereToChange(ctx context.Context, env *cli.Env, owner apply.Owner, object client.Object) string {
	whole := fmt.Sprintf("%s %s/%s", owner.Kind, owner.Namespace, owner.Name)
	hub, err := env.Hub()
	if err != nil || owner.Kind != v1alpha1.GitSyncKind {
		return whole
	}
	c, err := hub.Client()
	if err != nil {
		return whole
	}
	gs := &v1alpha1.GitSync{}
	if c.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, gs) != nil {
		return "its manifest in the repository of " + whole
	}
	folder := strings.Trim(gs.Spec.Path, "./")
	place := "its manifest in " + gs.Spec.URL
	if folder != "" {
		place = fmt.Sprintf("its manifest below %s of %s", folder, gs.Spec.URL)
	}
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return place
	}
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return place
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	ctx, cancel := context.WithTimeout(ctx, lookForFile)
	defer cancel()
	lookup := &installation.Lookup{Hub: hub, Target: hub, SystemNamespace: env.SystemNamespace}
	objects, err := sources.RenderSync(ctx, lookup, gs)
	if err != nil {
		return place
	}
	for _, o := range objects.Objects {
		if o.GroupVersionKind().GroupKind() == kind.GroupKind() && o.GetName() == object.GetName() && o.GetNamespace() == object.GetNamespace() && o.File != "" {
			return fmt.Sprintf("%s of %s", o.File, gs.Spec.URL)
		}
	}
	return place
}
