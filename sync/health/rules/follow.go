// Package healthrules has a process compute the health of objects by the rules that an operator keeps
// in a ConfigMap of the system namespace, and follow them as they change. The rules are those of the
// cluster that the process runs in, whatever clusters it drives.
package healthrules

import (
	"context"
	"errors"
	"maps"
	"path"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/health"
)

const (
	// patience is how long the rules are waited for at the start: without them, an object that is
	// healthy by one of them would be reported as unhealthy, and then as healthy again.
	patience = 10 * time.Second
	// pause is how long after a refusal the rules are asked for again: the right may have been granted.
	pause = 5 * time.Minute
	// maxNote is how long the text of an event may be.
	maxNote = 1000
)

// follower takes what a watch shows of the ConfigMap.
type follower struct {
	log      logr.Logger
	recorder events.EventRecorder
	source   *cache.ListWatch
	// using are the files whose rules are in use; nil for none. Used by the watch only.
	using map[string]string
}

// Follow goes by the rules of the ConfigMap, as long as ctx lasts. It returns when they are known, or
// cannot be for now.
func Follow(ctx context.Context, client dynamic.Interface, namespace string, recorder events.EventRecorder) {
	f := &follower{
		log: logr.FromContextOrDiscard(ctx).WithName("health-rules").WithValues("configMap", namespace+"/"+v1alpha1.HealthRulesConfigMap), recorder: recorder,
		source: watch.Named(client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace), v1alpha1.HealthRulesConfigMap),
	}
	feed := watch.New(f.source, f, reduce)
	feed.Retry(pause)
	feed.Start(ctx)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := feed.Await(limited); err != nil {
		f.log.Error(err, "Health is told without the rules of a ConfigMap that cannot be read")
	}
}

// files are the rules of the ConfigMap, by file.
type files struct {
	metav1.ObjectMeta
	rules map[string]string
}

func reduce(object metav1.Object) *files {
	f := &files{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}}
	if u, ok := object.(*unstructured.Unstructured); ok {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		f.rules = data
	}
	maps.DeleteFunc(f.rules, func(name, _ string) bool { return path.Ext(name) != ".yaml" })
	return f
}

// Put implements watch.Sink.
func (f *follower) Put(now *files) {
	if maps.Equal(now.rules, f.using) {
		return
	}
	f.using = now.rules
	book, err := health.NewBook(now.rules)
	health.Use(book)
	f.log.Info("health rules changed", "files", len(now.rules))
	if err != nil {
		f.tell(now, err)
	}
}

// tell logs, and emits as events, which rules are left out.
func (f *follower) tell(now *files, err error) {
	regarding := &corev1.ConfigMap{ObjectMeta: now.ObjectMeta}
	for _, wrong := range split(err) {
		f.log.Error(wrong, "A rule of health is left out")
		if f.recorder != nil {
			f.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, v1alpha1.InvalidHealthRulesReason, "Read", "%s", excerpt.Of(wrong.Error(), maxNote))
		}
	}
}

// maxTold is how many invalid rules are reported one by one.
const maxTold = 10

func split(err error) []error {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return []error{err}
	}
	all := many.Unwrap()
	return all[:min(len(all), maxTold)]
}

// Drop implements watch.Sink.
func (f *follower) Drop(*files) { f.none() }

// Replace implements watch.Sink.
func (f *follower) Replace(all []*files, _ string) {
	if len(all) == 0 {
		f.none()
		return
	}
	f.Put(all[0])
}

// none goes by the rules that Waybill comes with.
func (f *follower) none() {
	if f.using != nil {
		f.using = nil
		health.Use(nil)
		f.log.Info("health rules are those that Waybill comes with")
	}
}
