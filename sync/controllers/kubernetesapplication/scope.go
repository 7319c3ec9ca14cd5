package kubernetesapplication

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// scope is what the steps of one pass share.
type scope struct {
	// app is the object of the pass; conclude writes its status.
	app *v1alpha1.KubernetesApplication
	key types.NamespacedName
	// owner is what its resources are marked with.
	owner string

	// cluster is where the application is scheduled to; nil while it is not scheduled, or if the
	// KubernetesCluster does not exist. Read only. Set by prepare.
	cluster *v1alpha1.KubernetesCluster
	// skip ends the pass without reporting anything. Set by prepare.
	skip bool
	// undecided means that not all clusters were checked yet; unplaced is why none was found. Set
	// by schedule.
	undecided bool
	unplaced  error
	// considered is the first cluster of which unplaced says why the application does not fit there.
	considered string
	// requeueAfter is when to look again at what is skipped or undecided; zero for never. Set by
	// schedule.
	requeueAfter time.Duration

	// resources are those of the templates, in their order. Set by list and keep.
	resources []resource
	// surplus are our resources that have no template, or that cannot become what their template
	// says. Set by list and remove.
	surplus []*v1alpha1.KubernetesApplicationResource
	// left are the resources that a deletion waits for, by name. Set by remove.
	left map[string]*v1alpha1.KubernetesApplicationResource
	// failed is the first failure to write resources that is worth another try.
	failed error
}

// resource is the state of the resource of one template.
type resource struct {
	// live is the KubernetesApplicationResource, nil if there is none of ours. Read only.
	live *v1alpha1.KubernetesApplicationResource
	// conflict says whose the resource of that name is, if it is not ours; empty otherwise.
	conflict string
	// stale means that the cache is behind: the next pass finds out whether the resource is as its
	// template says.
	stale bool
	// refused is the error with which the API server of the hub refused a write.
	refused error
}

func (r *Reconciler) newScope(app *v1alpha1.KubernetesApplication) *scope {
	key := client.ObjectKeyFromObject(app)
	return &scope{app: app, key: key, owner: r.owner(key)}
}

func (s *scope) deleting() bool { return !s.app.DeletionTimestamp.IsZero() }

func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.app.Namespace, Name: s.app.Spec.ClusterName}
}

// submitted counts the resources that the cluster holds as they are templated.
func (s *scope) submitted() int {
	n := 0
	for _, r := range s.resources {
		if r.submitted() {
			n++
		}
	}
	return n
}

// stale reports whether the cache was behind for any of the resources.
func (s *scope) stale() bool {
	return slices.ContainsFunc(s.resources, func(r resource) bool { return r.stale })
}

// refused reports whether the hub has refused to store any of the resources as they should be.
func (s *scope) refused() bool {
	return slices.ContainsFunc(s.resources, func(r resource) bool { return r.refused != nil })
}

func (r resource) submitted() bool {
	return r.live != nil && r.live.DeletionTimestamp.IsZero() && r.live.IsSubmitted()
}
