package get

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
)

// answer is the answer of one cluster: a result per reference of the query, or why there is none.
type answer[T any] struct {
	cluster *fleet.Cluster
	results []T
	// refusals say which references may not be read. Their results are zero.
	refusals []refusal
	// missing says, by reference, that there is no object of that name. Their results are zero.
	missing map[int]error
	err     error
}

// refusal says that a reference may not be read.
type refusal struct {
	kind kinds.Kind
	err  error
}

// forbidden returns the kinds that may not be read.
func (a answer[T]) forbidden() []string {
	var names []string
	for _, refused := range a.refusals {
		names = append(names, refused.kind.Resource)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read reads one reference from one cluster.
type read[T any] func(*reader, context.Context, kinds.Reference, query) (T, error)

// ask reads the query from all clusters concurrently. With several clusters, the error of one that
// fails is in its answer, and an object that only some of them have is no error; one that none has is
// if nothing else was asked for, and else is up to incomplete. With one cluster, ask returns any
// error, but for refusals while something may be read.
func ask[T any](ctx context.Context, clusters []*fleet.Cluster, q query, get read[T]) ([]answer[T], error) {
	if len(clusters) > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	answers := make([]answer[T], len(clusters))
	var group errgroup.Group
	group.SetLimit(maxClusters)
	for i, cluster := range clusters {
		group.Go(func() error {
			answers[i] = askOne(ctx, cluster, q, get)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(clusters) == 1 {
		if err := answers[0].err; err != nil {
			return answers, err
		}
		return answers, answers[0].firstMissing()
	}
	if nowhere := missingEverywhere(answers, q); len(nowhere) == len(q.refs) {
		return answers, errors.Join(nowhere...)
	}
	return answers, nil
}

// maxClusters is how many clusters are asked at a time.
const maxClusters = 32

func askOne[T any](ctx context.Context, cluster *fleet.Cluster, q query, get read[T]) answer[T] {
	a := answer[T]{cluster: cluster, missing: map[int]error{}}
	r, err := newReader(ctx, cluster)
	if err != nil {
		a.err = err
		return a
	}
	for i, ref := range q.refs {
		result, err := get(r, ctx, ref, q)
		switch {
		case apierrors.IsNotFound(err) && ref.Name != "":
			a.missing[i] = describe(err, ref, q)
		case apierrors.IsForbidden(err):
			a.refusals = append(a.refusals, refusal{ref.Kind, describe(err, ref, q)})
		case err != nil:
			a.err = describe(err, ref, q)
			return a
		}
		a.results = append(a.results, result)
	}
	if len(a.refusals) == len(q.refs) {
		a.err = refused(a.refusals, q)
	}
	return a
}

// refused returns why references may not be read. If no kind was named, the first says enough.
func refused(refusals []refusal, q query) error {
	errs := make([]error, len(refusals))
	for i, refused := range refusals {
		errs[i] = refused.err
	}
	if q.every {
		return errs[0]
	}
	return errors.Join(errs...)
}

// firstMissing returns the first object that is missing; nil if none is.
func (a answer[T]) firstMissing() error {
	if len(a.missing) == 0 {
		return nil
	}
	return a.missing[slices.Min(slices.Collect(maps.Keys(a.missing)))]
}

// missingEverywhere returns an error for each object that no cluster has, as far as all answer.
func missingEverywhere[T any](answers []answer[T], q query) []error {
	var errs []error
	for i := range q.refs {
		if !slices.ContainsFunc(answers, func(a answer[T]) bool { return a.err != nil || a.missing[i] == nil }) {
			errs = append(errs, answers[0].missing[i])
		}
	}
	return errs
}

// describe adds to an error which object it is about.
func describe(err error, ref kinds.Reference, q query) error {
	var status *apierrors.StatusError
	if ref.Name == "" || !errors.As(err, &status) {
		return err
	}
	where := ""
	switch {
	case q.anywhere(ref):
		where = " in any namespace"
	case ref.Kind.Namespaced:
		where = " in namespace " + q.namespace
	}
	if apierrors.IsNotFound(err) && ref.Kind.Namespaced && !q.anywhere(ref) {
		return fmt.Errorf("get %s/%s%s: %w: `waybill get %s -A` lists those of all namespaces", ref.Kind.Singular, ref.Name, where, err, ref.Kind.Resource)
	}
	return fmt.Errorf("get %s/%s%s: %w", ref.Kind.Singular, ref.Name, where, err)
}
