package kubernetesapplication

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/placement"
)

// askTimeout bounds what a pass asks of clusters that stop to answer meanwhile.
const askTimeout = 5 * time.Second

var errTooSlow = errors.New("it does not answer in time")

// survey is what one pass asks one cluster about kinds. Each question is put once. It is for
// one goroutine at a time.
type survey struct {
	kinds   *kinds
	cluster *cluster.Cluster
	app     types.NamespacedName
	answers map[schema.GroupVersionKind]error
}

func (k *kinds) survey(c *cluster.Cluster, app types.NamespacedName) *survey {
	return &survey{kinds: k, cluster: c, app: app, answers: map[schema.GroupVersionKind]error{}}
}

// serves returns nil where the cluster serves a kind, in that version, as far as is remembered.
// Else the application is woken when that may have changed, unless the error is an
// ErrUnanswered.
func (q *survey) serves(ctx context.Context, gvk schema.GroupVersionKind) error {
	answer, asked := q.answers[gvk]
	if asked {
		return answer
	}
	switch err := mapped(ctx, q.cluster.Mapper(), gvk); {
	case meta.IsNoMatchError(err):
		answer = q.kinds.absent(ctx, q.cluster, q.app, gvk)
	case err != nil:
		answer = unanswered(ctx, err)
	}
	q.answers[gvk] = answer
	return answer
}

// confirm asks the cluster itself for the kinds that may have gone since they were seen: a
// decision is for good (W60). Where one is missing, or there is no answer, it returns false and
// serves says so from now on.
func (q *survey) confirm(ctx context.Context, kinds []schema.GroupVersionKind) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errTooSlow)
	defer cancel()
	byVersion := map[schema.GroupVersion][]schema.GroupVersionKind{}
	for _, gvk := range kinds {
		if !isBuiltIn(gvk.Group) {
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

// gone says why a kind is not served that was remembered to be.
func (q *survey) gone(ctx context.Context, gvk schema.GroupVersionKind) error {
	meta.MaybeResetRESTMapper(q.cluster.Mapper())
	return q.kinds.absent(ctx, q.cluster, q.app, gvk)
}

// mapped asks a mapper for a kind. The mapper may ask the cluster, and heeds no context: it is
// left to its own where it takes too long.
func mapped(ctx context.Context, mapper meta.RESTMapper, gvk schema.GroupVersionKind) error {
	answer := make(chan error, 1)
	go func() {
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		answer <- err
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-answer:
		return err
	}
}

// unanswered is the error of a question that the cluster did not answer.
func unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%w: %w", placement.ErrUnanswered, err)
}

// isBuiltIn says whether a group comes with every API server.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || group == definitionKind.Group || clientgoscheme.Scheme.IsGroupRegistered(group)
}
