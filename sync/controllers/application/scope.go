package application

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/reconcile"
)

// scope is what the steps of one pass share.
type scope struct {
	// app is the object of the pass; steps write its status.
	app *v1alpha1.Application
	key types.NamespacedName
	// pass writes the status and sends events.
	pass *reconcile.Pass
	// entry is what is prepared for the spec.
	entry *entry
	// unheld is why the API server refuses the finalizer; nil if it does not.
	unheld error

	// components are the objects that belong to the Application; set by survey.
	components map[tracker.Ref]*tracker.Object
	// entries holds the index of each component in the status; set by survey, which sorts them
	// last.
	entries map[tracker.Ref]int
	// stale are objects that refer to the Application as an owner and should not; set by survey.
	stale []*tracker.Object
	// leaving are those of them that do not count, because they only wait for the reference to be
	// taken off; set by survey. If that takes long, they do.
	leaving sets.Set[tracker.Ref]
	// unseen is what the last status says of objects that cannot be seen at the moment; set by survey.
	unseen map[tracker.Ref]v1alpha1.ComponentStatus
	// starting are kinds of which nothing is known yet; set by survey. unread says the same about
	// the health of a component.
	starting []string
	unread   bool
	// denied says, for each kind that may not be watched, why; set by survey.
	denied map[string]error
	// settling: an object is about to be written by us, and will then be as it should; set by survey.
	settling bool
	// unowned counts components that still need an ownerReference, refused says why one could not
	// be given. Set by survey.
	unowned int
	refused error

	// total and healthy count components; set by summarize. unhealthy says what is wrong with some
	// of them.
	total, healthy int
	unhealthy      []string

	// cycle leads from the Application to itself; set by checkDependencies.
	cycle []string
	// missing are dependencies that do not exist; set by checkDependencies.
	missing []string

	// checkup is what prevents the health check from being ready; set by checkHealth.
	checkup error
	// requeueAfter is when to look again; zero for never.
	requeueAfter time.Duration
}

// pending reports whether too little is known to write a status; an event will follow.
func (s *scope) pending() bool { return len(s.starting) > 0 || s.unread }
