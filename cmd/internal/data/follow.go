package data

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/await"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

// follow prints each step of the operation that an object asks for, once it is over, and in the end what
// it came to. It returns ErrNegative if that is not what was asked for, or not in time.
func (s *session) follow(ctx context.Context, object client.Object, read func(*unstructured.Unstructured) (course, error)) error {
	watched, err := s.untyped(object)
	if err != nil {
		return err
	}
	p := output.NewSteps(s.env.Out, s.env.ErrOut, kinds.Describe(watched))
	var state course
	var unreadable error
	last, err := await.Until(ctx, s.target, watched, func(live *unstructured.Unstructured) bool {
		if state, unreadable = read(live); unreadable != nil {
			return true
		}
		p.See(state.step())
		return state.ended
	})
	p.Stop()
	if last != nil && !state.ended && unreadable == nil { // it may have been read only now
		if state, unreadable = read(last); unreadable == nil {
			p.See(state.step())
			p.Stop()
		}
	}
	if unreadable != nil {
		return unreadable
	}
	if !state.ended {
		return s.unfinished(ctx, watched, state, err)
	}
	p.Finish(state.result, state.succeeded)
	if state.goesOn {
		s.hint(watched)
	}
	if !state.succeeded {
		return cli.ErrNegative
	}
	return nil
}

// untyped returns an object without its type, as it is watched.
func (s *session) untyped(object client.Object) (*unstructured.Unstructured, error) {
	kind, err := s.client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// unfinished returns why an operation is no longer followed, and how to go on.
func (s *session) unfinished(ctx context.Context, object *unstructured.Unstructured, state course, err error) error {
	name := kinds.Describe(object)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("interrupted: %s goes on; to follow it: %s", name, s.again(object))
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", name, err)
	case state.phase == "" && state.message == "":
		fmt.Fprintf(s.env.ErrOut, "%s: not reconciled yet: check that waybill-sync runs in cluster %s, with the role data\n", name, s.target.Name())
	default:
		fmt.Fprintf(s.env.ErrOut, "%s: not done in time: %s\n", name, output.Escape(output.Joined(state.phase, state.message)))
	}
	s.hint(object)
	return cli.ErrNegative
}

// hint says how to follow what goes on without the command.
func (s *session) hint(object *unstructured.Unstructured) {
	fmt.Fprintf(s.env.ErrOut, "It goes on without this command; to follow it: %s\n", s.again(object))
}

// again returns the command that shows how far an object is.
func (s *session) again(object *unstructured.Unstructured) string {
	return fmt.Sprintf("waybill get %s/%s -n %s%s --watch", strings.ToLower(object.GetKind()), object.GetName(), object.GetNamespace(), s.there())
}

// there returns the flag that leads to the cluster of the session.
func (s *session) there() string {
	if !s.env.NamesCluster() {
		return ""
	}
	return " --cluster " + s.target.Key.String()
}
