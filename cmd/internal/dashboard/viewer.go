package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/excerpt"
)

const (
	// reviewAgain is how long an answer about the rights of a user counts: that long after they are withdrawn,
	// nothing is shown by them any more.
	reviewAgain = 30 * time.Second
	// reviewLost is how long an answer counts while the API server does not answer, and rights cannot be changed.
	reviewLost = 15 * time.Minute
	// reviewWithin bounds a question about rights, reviewsAtOnce how many are asked at a time for a page, and
	// maxReviews how many answers are kept for a user.
	reviewWithin  = 10 * time.Second
	reviewsAtOnce = 16
	maxReviews    = 20_000
	// maxReason is how much is kept of what an API server says of an answer.
	maxReason = 500
)

// viewer is the user that a request is answered for. Pages show, and actions do, what that user may: the hub
// and its clusters are reached with their rights, and of the inventory they are shown what they may list. It is safe
// for concurrent use.
type viewer struct {
	// name is empty for the user of the kubeconfig.
	name   string
	groups []string
	// hub, with its user clusters, as the viewer may use it.
	hub *fleet.Cluster
	// own says that the inventory was read with the viewer's rights: all of it is theirs to see.
	own     bool
	now     func() time.Time
	reviews *utilcache.LRUExpireCache // by question
	asking  singleflight.Group
}

func newViewer(name string, groups []string, hub *fleet.Cluster) *viewer {
	return &viewer{name: name, groups: groups, hub: hub, now: time.Now, reviews: utilcache.NewLRUExpireCache(maxReviews)}
}

// visit is a viewer's session.
type visit struct {
	*viewer
	// until is when it ends, and over reports whether it has; the zero values are of one that does not.
	until time.Time
	over  func() bool
	// signedIn says that they can sign out.
	signedIn bool
	// vouched says that only what is in front of the dashboard knows when it ends, and says so at each request.
	vouched bool
}

type visitKey struct{}

// as returns the request as one that is answered for a viewer.
func as(r *http.Request, v *viewer) *http.Request { return during(r, visit{viewer: v}) }

// during returns the request as one of a session.
func during(r *http.Request, v visit) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

func visitOf(r *http.Request) visit {
	v, _ := r.Context().Value(visitKey{}).(visit)
	return v
}

// viewerOf returns who a request is answered for. Each that reaches a page has one.
func viewerOf(r *http.Request) *viewer { return visitOf(r).viewer }

// cluster returns a user cluster, or the hub for the zero key, as the viewer may use it.
func (v *viewer) cluster(ctx context.Context, key types.NamespacedName) (*fleet.Cluster, error) {
	if key.Name == "" {
		return v.hub, nil
	}
	return v.hub.UserCluster(ctx, key)
}

// may reports whether the viewer may do something in a cluster that v.cluster has returned, and why not. An
// answer counts for reviewAgain. What cannot be found out may not be done.
func (v *viewer) may(ctx context.Context, in *fleet.Cluster, what authorizationv1.ResourceAttributes) (ok bool, why string) {
	key := question{in.Key, what.String()}
	known, found := v.reviews.Get(key)
	before, _ := known.(review)
	if found && v.now().Sub(before.at) < reviewAgain {
		return before.allowed, before.why
	}
	answer := v.asking.DoChan(fmt.Sprint(key), func() (any, error) {
		// Others wait for it, too: it does not end with the request that has asked first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewWithin)
		defer cancel()
		return v.ask(ctx, in, what)
	})
	select {
	case <-ctx.Done():
		return false, "It cannot be found out what you may do: " + ctx.Err().Error()
	case got := <-answer:
		if now, known := got.Val.(review); got.Err == nil && known {
			v.reviews.Add(key, now, reviewLost)
			return now.allowed, now.why
		}
		// A user makes the API server turn their requests away by sending it too many: that is no reason to believe what it said before.
		if found && unanswered(got.Err) && !apierrors.IsTooManyRequests(got.Err) && v.now().Sub(before.at) < reviewLost {
			return before.allowed, before.why
		}
		return false, "It cannot be found out what you may do: " + in.Explain(got.Err).Error()
	}
}

type question struct {
	cluster types.NamespacedName
	what    string
}

// review is an answer about rights.
type review struct {
	allowed bool
	why     string
	at      time.Time
}

// ask has the API server say what the viewer may do, as the viewer.
func (v *viewer) ask(ctx context.Context, in *fleet.Cluster, what authorizationv1.ResourceAttributes) (review, error) {
	c, err := in.Client()
	if err != nil {
		return review{}, err
	}
	r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	at := v.now()
	if err := c.Create(ctx, r); err != nil {
		return review{}, err
	}
	if r.Status.Allowed {
		return review{allowed: true, at: at}, nil
	}
	why := fmt.Sprintf("You may not %s.", describeRight(what))
	if said := cmp.Or(r.Status.EvaluationError, r.Status.Reason); said != "" {
		why += " " + excerpt.Of(said, maxReason) // it is kept, and a user cluster says it
	}
	return review{why: why, at: at}, nil
}

// describeRight says in the words of kubectl what may be done.
func describeRight(what authorizationv1.ResourceAttributes) string {
	resource := what.Resource
	if what.Group != "" {
		resource += "." + what.Group
	}
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	said := strings.TrimSpace(what.Verb + " " + resource + " " + what.Name)
	if what.Namespace != "" {
		said += " in namespace " + what.Namespace
	}
	return said
}

// scope is what of one kind of the inventory a viewer may see.
type scope struct {
	all        bool
	namespaces map[string]bool // of those that have objects of the kind, if not all
	why        string          // not all
}

func (s scope) has(namespace string) bool { return s.all || s.namespaces[namespace] }

// scope returns what a viewer may see of what a watch has: all, or what is in the namespaces in which they may list it.
func (v *viewer) scope(ctx context.Context, f *follow) scope {
	if v.own {
		return scope{all: true}
	}
	list := authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.Group, Resource: f.resource}
	all, why := v.may(ctx, v.hub, list)
	if all {
		return scope{all: true}
	}
	namespaces := f.namespaces()
	granted := make([]bool, len(namespaces))
	var group errgroup.Group
	group.SetLimit(reviewsAtOnce)
	for i, namespace := range namespaces {
		in := list
		in.Namespace = namespace
		group.Go(func() error {
			granted[i], _ = v.may(ctx, v.hub, in)
			return nil
		})
	}
	_ = group.Wait() // none fails
	s := scope{namespaces: map[string]bool{}, why: why}
	for i, namespace := range namespaces {
		if granted[i] {
			s.namespaces[namespace] = true
		}
	}
	return s
}

// sees reports whether a viewer may see what a watch has in a namespace; empty for what has none.
func (v *viewer) sees(ctx context.Context, f *follow, namespace string) bool {
	if v.own {
		return true
	}
	list := authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.Group, Resource: f.resource}
	ok, _ := v.may(ctx, v.hub, list)
	if !ok && namespace != "" {
		list.Namespace = namespace
		ok, _ = v.may(ctx, v.hub, list)
	}
	return ok
}

// visible returns the objects of a watch that a viewer may see, by namespace and name. They must not be modified.
func visible[T client.Object](ctx context.Context, v *viewer, f *follow) []T {
	all := objects[T](f)
	if s := v.scope(ctx, f); !s.all {
		all = slices.DeleteFunc(all, func(o T) bool { return !s.has(o.GetNamespace()) })
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// unanswered reports whether the error of a request says that the server did not answer it.
func unanswered(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}
