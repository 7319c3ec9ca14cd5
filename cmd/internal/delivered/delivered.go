// Package delivered keeps users from changing what something else delivers and would put back.
package delivered

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/deliver/apply"
)

// lookForFile is how long it may take to find the file that an object is delivered from.
const lookForFile = 20 * time.Second

// Check returns an error if something else delivers an object of the target, and would undo what is
// changed by hand; with force, that is a warning. what names the object.
func Check(ctx context.Context, at fleet.Place, what string, object client.Object, force bool) error {
	owner, owned := apply.OwnerOf(object)
	if !owned {
		return nil
	}
	message := Describe(what, owner)
	if force {
		at.Warn("%s", message)
		return nil
	}
	open := func() (*installation.Sources, func(), error) {
		sources, err := installation.OpenSources(nil, false)
		return sources, func() { _ = sources.Close() }, err // a failure to clean up is not worth an error
	}
	return fmt.Errorf("%s: change %s instead, or change it until then with --force", message, Find(ctx, at, object, owner, open))
}

// Describe says who delivers an object, and what that means for changes by hand. what names the object.
func Describe(what string, owner apply.Owner) string {
	says := "git says"
	if owner.Kind != v1alpha1.GitSyncKind {
		says = "it wants"
	}
	return fmt.Sprintf("%s is delivered by %s %s/%s, which puts back what %s", what, owner.Kind, owner.Namespace, owner.Name, says)
}

// Source is where an object is delivered from, as exactly as the user can see it.
type Source struct {
	// Owner delivers the object.
	Owner apply.Owner
	// Sync is the GitSync; nil if the owner is another, or cannot be read.
	Sync *v1alpha1.GitSync
	// File of its repository; empty if it was not found.
	File string
}

// String says what to change instead of the object.
func (s Source) String() string {
	whole := fmt.Sprintf("%s %s/%s", s.Owner.Kind, s.Owner.Namespace, s.Owner.Name)
	switch {
	case s.Owner.Kind != v1alpha1.GitSyncKind:
		return whole
	case s.Sync == nil:
		return "its manifest in the repository of " + whole
	case s.File != "":
		return fmt.Sprintf("%s of %s", s.File, s.Sync.Spec.URL)
	}
	if folder := strings.Trim(s.Sync.Spec.Path, "./"); folder != "" {
		return fmt.Sprintf("its manifest below %s of %s", folder, s.Sync.Spec.URL)
	}
	return "its manifest in " + s.Sync.Spec.URL
}

// Find returns where an object of the target that has an owner is delivered from. open returns what fetches the
// repository, and what ends that.
func Find(ctx context.Context, at fleet.Place, object client.Object, owner apply.Owner, open func() (*installation.Sources, func(), error)) Source {
	found := Source{Owner: owner}
	hub, err := at.Hub.Client()
	if err != nil || owner.Kind != v1alpha1.GitSyncKind {
		return found
	}
	gs := &v1alpha1.GitSync{}
	if hub.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, gs) != nil {
		return found
	}
	found.Sync = gs
	kind, err := hub.GroupVersionKindFor(object)
	if err != nil {
		return found
	}
	sources, end, err := open()
	if err != nil {
		return found
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, lookForFile)
	defer cancel()
	lookup := &installation.Lookup{Hub: at.Hub, Target: at.Hub, SystemNamespace: at.SystemNamespace}
	objects, err := sources.RenderSync(ctx, lookup, gs)
	if err != nil {
		return found
	}
	for _, o := range objects.Objects {
		if o.GroupVersionKind().GroupKind() == kind.GroupKind() && o.GetName() == object.GetName() && o.GetNamespace() == object.GetNamespace() {
			found.File = o.File
		}
	}
	return found
}
