package kubernetesapplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
)

// askTimeout bounds how long a pass waits for clusters that have stopped answering.
const askTimeout = 5 * time.Second

var errTooSlow = errors.New("it does not answer in time")

// survey is what one pass asks one cluster about kinds. Each question is asked once. It is not safe
// for concurrent use.
type survey struct {
	kinds   *kinds
	cluster *cluster.Cluster
	app     types.NamespacedName
	answers map[schema.GroupVersionKind]error
}

func (k *kinds) survey(c *cluster.Cluster, app types.NamespacedName) *survey {
	return &survey{kinds: k, cluster: c, app: app, answers: map[schema.GroupVersionKind]error{}}
}

// serves returns nil if the cluster serves a kind, in that version, as far as is remembered.
// Otherwise the application is enqueued when that may have changed, unless the error is an
// ErrUnanswered.
func (q *survey) serves(ctx context.Context, gvk schema.GroupVersionKind) error {
	answer, asked := q.answers[gvk]
	if asked {
		return answer
	}
	switch _, err := watch.Mapping(ctx, q.cluster.Mapper(), gvk.GroupKind(), gvk.Version); {
	case meta.IsNoMatchError(err):
		answer = q.kinds.absent(ctx, q.cluster, q.app, gvk)
	case err != nil:
		answer = unanswered(ctx, err)
	}
	q.answers[gvk] = answer
	return answer
}

// confirm asks the cluster itself for the kinds that may have gone since they were seen: a decision
// is final. If one is missing, or there is no answer, it returns false, and serves returns
// the reason from now on.
func (q *survey) confirm(ctx context.Context, kinds []schema.GroupVersionKind) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errTooSlow)
	defer cancel()
	byVersion := map[schema.GroupVersion][]schema.GroupVersionKind{}
	for _, gvk := range kinds {
		if !watch.IsBuiltIn(gvk.Group) {
			byVersion[gvk.GroupVersion()] = append(byVersion[gvk.GroupVersion()], gvk)
		}
	}
	confirmed := true
	for version, kinds := range byVersion {
		served, err := q.cluster.Served(ctx, version)
		for _, gvk := range kinds {
			switch {
			case err != nil:
				q.answers[gvk] = unanswered(ctx, err)
			case !served.Has(gvk.Kind):
				q.answers[gvk] = q.gone(ctx, gvk)
			}
			confirmed = confirmed && q.answers[gvk] == nil
		}
	}
	return confirmed
}

// gone returns why a kind that was remembered as served is not served.
func (q *survey) gone(ctx context.Context, gvk schema.GroupVersionKind) error {
	meta.MaybeResetRESTMapper(q.cluster.Mapper())
	return q.kinds.absent(ctx, q.cluster, q.app, gvk)
}

// unanswered returns the error of a question that the cluster did not answer.
func unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%w: %w", placement.ErrUnanswered, err)
}
