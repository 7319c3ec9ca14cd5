package valuesschema

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/sync/source/subscription"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=waybill-system,resources=configmaps,verbs=get;create;patch

// Reconciler learns schemas. Fields without a default are required.
type Reconciler struct {
	// Client reads definitions from a cache, and ConfigMaps from the API server.
	Client client.Client
	Charts Charts
	// Git has the repositories with charts.
	Git *git.Store
	// Secrets reads the credentials of sources.
	Secrets *content.Reader
	// SystemNamespace holds those, and the ConfigMaps with schemas.
	SystemNamespace string
	// Backoff returns the delay after that many failures of a source in a row. Default: 5 s, which doubles up to 10
	// minutes.
	Backoff func(failures int) time.Duration

	charts   *subscription.Pool[key, learned]
	waker    *reconcile.Waker[ctrl.Request]
	sessions reconcile.Sessions[string, session] // by the name of the definition
}

// Charts fetches charts.
type Charts interface {
	Get(ctx context.Context, ref chart.Reference, cred chart.Credentials) (*chart.Chart, error)
	FromFS(ctx context.Context, from chart.Tree, cred chart.Credentials) (*chart.Chart, error)
}

// key identifies a version of a definition.
type key struct {
	definition, version string
	uid                 types.UID
}

// learned is what was learned about a version.
type learned struct {
	entry  v1alpha1.ValuesSchema
	packed []byte
}

// session is what is remembered of a definition between passes.
type session struct {
	uid types.UID
	// stored has the digests in the ConfigMap; nil until it was read.
	stored map[string]bool
	// learned has what is not published yet, by version.
	learned map[string]learned
	// charts are asked for the schemas of those versions of which none is known, by version.
	charts map[string]*subscription.Subscription[key, learned]
}

// minBackoff and maxBackoff bound the default of Backoff.
const (
	minBackoff = 5 * time.Second
	maxBackoff = 10 * time.Minute
)

// Reconcile learns what is not known of a definition's versions.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
	definition := &v1alpha1.ApplicationDefinition{}
	err := r.Client.Get(ctx, req.NamespacedName, definition)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || !definition.DeletionTimestamp.IsZero() {
		r.forget(req.Name)
		return ctrl.Result{}, nil
	}
	if !definition.InCatalog() {
		return ctrl.Result{}, nil // a copy, whose hub knows the schemas
	}
	s := r.session(definition)
	if err := r.readStored(ctx, definition, s); err != nil {
		return ctrl.Result{}, err
	}
	wanted, asking := r.learn(ctx, definition, s)
	if asking {
		return ctrl.Result{}, nil // its end enqueues the definition
	}
	if err := r.publish(ctx, definition, s, wanted); err != nil {
		return ctrl.Result{}, err
	}
	var due []time.Time
	for _, chart := range s.charts {
		due = append(due, chart.State().Due)
	}
	return ctrl.Result{RequeueAfter: reconcile.UntilNext(began, due...)}, nil
}

// session returns what is remembered of a definition. If another of its name was there before, that is forgotten.
func (r *Reconciler) session(definition *v1alpha1.ApplicationDefinition) *session {
	if s := r.sessions.Get(definition.Name); s != nil && s.uid != definition.UID {
		r.forget(definition.Name)
	}
	return r.sessions.Of(definition.Name, func() *session {
		return &session{uid: definition.UID, learned: map[string]learned{}, charts: map[string]*subscription.Subscription[key, learned]{}}
	})
}

// forget drops what is remembered of a definition that goes, and what is under way for it.
func (r *Reconciler) forget(definition string) {
	if s := r.sessions.Get(definition); s != nil {
		s.rest(nil)
		r.sessions.Drop(definition)
	}
}

// rest drops the questions about versions of which nothing is asked any more, with what is under way for them.
func (s *session) rest(asked map[string]bool) {
	for version, chart := range s.charts {
		if !asked[version] {
			chart.Rest()
			delete(s.charts, version)
		}
	}
}

func keyOf(definition *v1alpha1.ApplicationDefinition, version string) key {
	return key{definition: definition.Name, version: version, uid: definition.UID}
}

// publish writes the schemas that were learned, and then the status that names them.
func (r *Reconciler) publish(ctx context.Context, definition *v1alpha1.ApplicationDefinition, s *session, wanted []v1alpha1.ValuesSchema) error {
	if apiequality.Semantic.DeepEqual(definition.Status.ValuesSchemas, wanted) && len(s.learned) == 0 {
		return nil
	}
	if err := r.store(ctx, definition, s, wanted); err != nil {
		return err
	}
	changed := definition.DeepCopy()
	changed.Status.ValuesSchemas = slices.Clone(wanted)
	if err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(definition)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write which schemas are known: %w", err)
	}
	clear(s.learned)
	return nil
}
