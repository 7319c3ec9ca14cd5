package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// accessTimeout bounds all permission checks of one decision.
	accessTimeout = 5 * time.Second

	// accessParallel is how many permission checks of one decision run at a time.
	accessParallel = 20
)

// The verbs that RBAC rules may name in addition to the standard ones, on our own resources and on
// namespaces.
const (
	verbUse         = "use"          // target a KubernetesCluster, with full rights in it; bind to an ApplicationSnapshotContent
	verbInstall     = "install"      // an ApplicationDefinition
	verbInstallInto = "install-into" // a namespace other than the installation's own
	verbCopy        = "copy"         // write the copies of a hub's ApplicationDefinitions
	verbEnforce     = "enforce"      // write and delete the installations that an ApplicationDefinition enforces
	verbRestore     = "restore"      // an ApplicationSnapshot, with the Secrets and the data in it
)

// need is a permission that the user must hold to write an object; without the check they would
// gain rights through us.
type need struct {
	// anyOf lists the permissions, one of which is enough.
	anyOf []authorizationv1.ResourceAttributes

	// because describes what the object would do with it.
	because string
}

func needs(because string, permission authorizationv1.ResourceAttributes) need {
	return need{anyOf: []authorizationv1.ResourceAttributes{permission}, because: because}
}

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// access asks the API server what a user may do.
type access struct {
	reviews authorizationclient.SubjectAccessReviewInterface
}

// check refuses the request unless its user holds every need; the error lists all that are missing.
// If the API server does not answer, the request is refused.
func (a *access) check(ctx context.Context, obj client.Object, resource string, wanted []need) error {
	return a.checkOn(ctx, v1alpha1.GroupVersion.WithResource(resource).GroupResource(), obj.GetName(), wanted)
}

// checkOn is check for the object of that name, of any kind.
func (a *access) checkOn(ctx context.Context, resource schema.GroupResource, name string, wanted []need) error {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	// The API server allows this group everything before it asks any authorizer.
	if slices.Contains(req.UserInfo.Groups, user.SystemPrivilegedGroup) {
		return nil
	}
	missing, err := a.missing(ctx, req.UserInfo, notHeld(ctx, wanted))
	if err != nil {
		return apierrors.NewServiceUnavailable("cannot check permissions, try again: " + err.Error())
	}
	if len(missing) == 0 {
		return nil
	}
	return apierrors.NewForbidden(resource, name,
		fmt.Errorf("user %q may not %s", req.UserInfo.Username, join(missing)))
}

// maxListed is how many missing permissions an error lists: a snapshot may hold many kinds.
const maxListed = 30

func join(missing []string) string {
	if more := len(missing) - maxListed; more > 0 {
		return fmt.Sprintf("%s; nor %d more", strings.Join(missing[:maxListed], "; nor "), more)
	}
	return strings.Join(missing, "; nor ")
}

// heldKey is the key of the needs in a context that the user of the request is known to hold.
type heldKey struct{}

// holding returns a context for the rest of the request, in which wanted is not checked again.
func holding(ctx context.Context, wanted []need) context.Context {
	return context.WithValue(ctx, heldKey{}, wanted)
}

func notHeld(ctx context.Context, wanted []need) []need {
	held, _ := ctx.Value(heldKey{}).([]need)
	return slices.DeleteFunc(slices.Clone(wanted), func(w need) bool {
		return slices.ContainsFunc(held, func(h need) bool { return slices.Equal(h.anyOf, w.anyOf) })
	})
}

// missing describes the needs that the user does not hold, in their original order.
func (a *access) missing(ctx context.Context, u authenticationv1.UserInfo, wanted []need) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(accessParallel)
	held := make([]bool, len(wanted))
	for i := range wanted {
		group.Go(func() (err error) {
			held[i], err = a.anyOf(ctx, u, wanted[i].anyOf)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []string
	for i, ok := range held {
		if !ok {
			missing = append(missing, describe(wanted[i].anyOf[0])+" ("+wanted[i].because+")")
		}
	}
	return missing, nil
}

func (a *access) anyOf(ctx context.Context, u authenticationv1.UserInfo, permissions []authorizationv1.ResourceAttributes) (bool, error) {
	for i := range permissions {
		review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: u.Username, Groups: u.Groups, UID: u.UID, Extra: extra(u.Extra),
				ResourceAttributes: &permissions[i],
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("review access: %w", err)
		}
		if review.Status.Allowed {
			return true, nil
		}
	}
	return false, nil
}

func extra(in map[string]authenticationv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	out := make(map[string]authorizationv1.ExtraValue, len(in))
	for k, v := range in {
		out[k] = authorizationv1.ExtraValue(v)
	}
	return out
}

// describe puts a permission in words: `delete statefulsets.apps in namespace "a"`.
func describe(p authorizationv1.ResourceAttributes) string {
	s := p.Verb + " " + p.Resource
	if p.Subresource != "" {
		s += "/" + p.Subresource
	}
	if p.Group != "" {
		s += "." + p.Group
	}
	if p.Name != "" {
		s += fmt.Sprintf(" %q", p.Name)
	}
	if p.Namespace != "" {
		s += fmt.Sprintf(" in namespace %q", p.Namespace)
	}
	return s
}
