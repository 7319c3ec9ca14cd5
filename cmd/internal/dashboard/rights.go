package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// need is a right that is needed for something: any one of these.
type need []authorizationv1.ResourceAttributes

// permission says what the viewer may do with an object, and what is missing.
type permission struct {
	Title, About string
	// Missing says which rights are; nothing if the viewer may.
	Missing []string
	// Needs says which rights it takes.
	Needs []string
	// Link leads there; empty for what is no action.
	Link string
}

// Granted reports whether the viewer may.
func (p permission) Granted() bool { return len(p.Missing) == 0 }

// missing returns which of the rights the viewer lacks, in words.
func (sub *subject) missing(ctx context.Context, needs []need) []string {
	lacks := make([]string, len(needs))
	var group errgroup.Group
	group.SetLimit(reviewsAtOnce)
	for i, oneOf := range needs {
		group.Go(func() error {
			for _, one := range oneOf {
				ok, why := sub.viewer.may(ctx, sub.cluster, one)
				if ok {
					lacks[i] = ""
					return nil
				}
				lacks[i] = why
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return slices.DeleteFunc(lacks, func(text string) bool { return text == "" })
}

func describeNeeds(needs []need) []string {
	var said []string
	for _, oneOf := range needs {
		text := ""
		for i, one := range oneOf {
			if i > 0 {
				text += ", or "
			}
			text += describeRight(one)
		}
		said = append(said, text)
	}
	return said
}

// permissions returns what the viewer may do with an object: the actions that there are for it, and no others.
func (s *server) permissions(ctx context.Context, sub *subject) []permission {
	fitting := actionsFor(sub)
	found := make([]permission, len(fitting))
	var group errgroup.Group
	for i, a := range fitting {
		group.Go(func() error {
			a, needs := a.of(ctx, s, sub), a.needs(sub)
			found[i] = permission{
				Title: a.title, About: a.about, Needs: describeNeeds(needs), Missing: sub.missing(ctx, needs), Link: sub.at.String() + "/actions/" + a.name,
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return found
}

// views returns what of an object can be seen only with further rights.
func (sub *subject) views(ctx context.Context) []permission {
	target := targetOf(sub)
	read := func(title, about, verb, resource, part, namespace string) (permission, need) {
		return permission{Title: title, About: about}, need{{Verb: verb, Resource: resource, Subresource: part, Namespace: namespace}}
	}
	var found []permission
	add := func(p permission, n need) {
		p.Needs, p.Missing = describeNeeds([]need{n}), sub.missing(ctx, []need{n})
		found = append(found, p)
	}
	add(read("Events", "what happened to it", "list", "events", "", sub.object.GetNamespace()))
	if sub.object.GetKind() != v1alpha1.ApplicationInstallationKind {
		return found
	}
	add(read("Pods", "its Pods in the tree", "list", "pods", "", target))
	add(read("Logs", "what its Pods write", "get", "pods", "log", target))
	add(read("Revisions in full", "values and manifests of Helm's records, and values that come from Secrets", "get", "secrets", "", target))
	return found
}

// targetOf returns the namespace of what an object installs.
func targetOf(sub *subject) string {
	inst, err := sub.installation()
	switch {
	case err != nil, sub.object.GetKind() != v1alpha1.ApplicationInstallationKind:
	case inst.Status.Application != nil:
		return inst.Status.Application.Namespace
	case inst.Spec.Namespace != nil:
		return inst.Spec.Namespace.Name
	}
	return sub.object.GetNamespace()
}

// rights shows what the viewer may do with an object, and why not.
func (s *server) rights(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	who := "You are"
	if sub.viewer.name != "" {
		who = fmt.Sprintf("You are %s", sub.viewer.name)
	} else {
		who += " the user of your kubeconfig"
	}
	s.showOf(w, r, sub, "rights", "What you may do with", map[string]any{
		"Who": who, "Groups": sub.viewer.groups, "Actions": s.permissions(ctx, sub), "Views": sub.views(ctx),
	})
}
