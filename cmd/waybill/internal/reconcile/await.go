package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/cmd/waybill/internal/output"
	syncwatch "waybill.dev/waybill/sync/watch"
)

// outcome is the result of a reconciliation.
type outcome struct {
	ready            bool
	revision, reason string
	message          string
	took             time.Duration
}

// String returns the outcome in one line.
func (o outcome) String() string {
	if !o.ready {
		return printers.EscapeTerminal(output.Shorten("not ready: " + o.reason + ": " + o.message))
	}
	text := o.message
	if o.revision != "" && !strings.Contains(text, o.revision) {
		text = o.revision + ", " + text
	}
	return fmt.Sprintf("ready: %s (%s)", printers.EscapeTerminal(output.Shorten(text)), o.took.Round(time.Millisecond))
}

// errDeleted ends the wait for an object that is gone.
var errDeleted = errors.New("was deleted meanwhile")

// await watches an object, as it is since it was annotated with token, until the reconciliation
// requested by that is done. progress is told what the object says meanwhile.
func await(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, token string, progress func(string)) (outcome, error) {
	if target.Paused && object.GetKind() == v1alpha1.ApplicationInstallationKind {
		return outcome{}, overdue(fmt.Sprintf("KubernetesCluster %s is paused, so it is not reconciled until that is resumed: "+
			"waybill resume cluster/%s -n %s", target.Key, target.Key.Name, target.Key.Namespace))
	}
	begin := time.Now()
	source, err := watchOne(target, object)
	if err != nil {
		return outcome{}, err
	}
	var last *unstructured.Unstructured
	event, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		if e.Type == watch.Deleted {
			return false, errDeleted
		}
		live, ok := e.Object.(*unstructured.Unstructured)
		if !ok || syncwatch.Older(live.GetResourceVersion(), object.GetResourceVersion()) {
			return false, nil // what was before our request, from a cache of the API server
		}
		last = live
		state := read(live, token)
		progress(state.message)
		return state.done, nil
	})
	if err == nil {
		last = event.Object.(*unstructured.Unstructured)
	} else if last == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		last, err = look(ctx, target, object, err)
	}
	state := state{}
	if last != nil {
		state = read(last, token)
	}
	if !state.done {
		return outcome{}, explain(ctx, err, last, state)
	}
	return outcome{ready: state.ready, revision: state.revision, reason: state.reason, message: state.message, took: time.Since(begin)}, nil
}

// lastLook is how long it may take to look at an object that no watch has shown in time.
const lastLook = 5 * time.Second

// look reads an object once, after the time for watching it is over. It returns the error with which
// that ended, or its own.
func look(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, ended error) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	live := object.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return nil, fmt.Errorf("look at it: %w", target.Explain(err))
	}
	return live, ended
}

// watchOne lists and watches a single object.
func watchOne(target *fleet.Cluster, object *unstructured.Unstructured) (cache.ListerWatcher, error) {
	config, httpClient, err := target.REST()
	if err != nil {
		return nil, err
	}
	unlimited := *httpClient
	unlimited.Timeout = 0 // a watch has no time limit
	all, err := dynamic.NewForConfigAndClient(config, &unlimited)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	mapper, err := target.Mapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", object.GetKind(), err)
	}
	var resource dynamic.ResourceInterface = all.Resource(mapping.Resource)
	if ns := object.GetNamespace(); ns != "" {
		resource = all.Resource(mapping.Resource).Namespace(ns)
	}
	only := fields.OneTermEqualSelector("metadata.name", object.GetName()).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return resource.Watch(ctx, o)
		},
	}, nil
}

// overdue is what did not happen in time, or will not.
type overdue string

// Error returns what did not happen in time.
func (o overdue) Error() string { return string(o) }

// explain returns why a wait ended early.
func explain(ctx context.Context, err error, last *unstructured.Unstructured, state state) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || last == nil {
		return err
	}
	switch {
	case !state.handled && last.GetKind() == v1alpha1.ApplicationInstallationKind:
		return overdue("nobody has taken it up: is waybill-sync running, with the controller of this kind, and is the KubernetesCluster not paused in the hub?")
	case !state.handled:
		return overdue("nobody has taken it up: is waybill-sync running, with the controller of this kind?")
	}
	return overdue(fmt.Sprintf("not ready in time: %s: %s", state.reason, state.message))
}

// state is what an object reports about a requested reconciliation.
type state struct {
	handled, done, ready      bool
	reason, message, revision string
}

// patient lists the reasons of Ready=False with which an object waits for others, and becomes Ready
// without a new attempt.
var patient = []string{v1alpha1.NotHealthyReason, v1alpha1.ProgressingReason}

func read(object *unstructured.Unstructured, token string) state {
	status := v1alpha1.ReconcileStatus{}
	raw, _, _ := unstructured.NestedMap(object.Object, "status") // absent before the first pass
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return state{message: err.Error()}
	}
	answered := answers(status.LastHandledReconcileAt, object.GetAnnotations()[v1alpha1.ReconcileAtAnnotation], token)
	s := state{handled: answered && status.ObservedGeneration >= object.GetGeneration()}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ReadyCondition {
			s.ready = c.Status == metav1.ConditionTrue
			s.reason, s.message = c.Reason, c.Message
			s.done = s.handled && (c.Status != metav1.ConditionUnknown || c.Reason == v1alpha1.SuspendedReason) &&
				(s.ready || !slices.Contains(patient, c.Reason))
		}
		if c.Type == v1alpha1.StalledCondition && c.Status == metav1.ConditionTrue {
			s.done = s.handled
		}
	}
	s.revision, _, _ = unstructured.NestedString(raw, "revision")
	return s
}

// answers reports whether the handled request answers ours: it is ours, or the one that has replaced
// it in the annotation. Tokens are not compared as times, which come from the clocks of two machines.
func answers(handled, annotated, token string) bool {
	return handled == token || annotated != token && handled == annotated
}
