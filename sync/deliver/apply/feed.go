package apply

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/sync/cluster/watch"
)

// sink receives what a feed sees. Its methods are called one at a time.
type sink interface {
	// put: the object was created or changed.
	put(*feed, *observed)
	// drop: the object is gone, or does not match the feed any more.
	drop(*feed, *observed)
	// replace: this is all there is at a resource version.
	replace(f *feed, all []*observed, version string)
	// synced: what the sink was shown is all there is, and a feed shows what changes.
	synced(f *feed)
	// lost: the feed has given up, after others came to rely on it; or, if first is true, at its first
	// try, whose outcome those wait for that it matters to.
	lost(f *feed, err error, first bool)
}

// feed is the watch of one scope. Its sink can distinguish it from one that has replaced it.
type feed struct {
	*watch.Feed[*observed]
	scope string
	sink  sink
	// full: the objects come with spec and status.
	full bool
	// statuses reports whether the objects of an owner are kept with their field status. Nil means
	// that no status is kept.
	statuses func(Owner) bool
	// version is the last resource version that the sink was shown. Guarded by the sink.
	version string
	// pause is the time after which a feed that is refused is replaced by another.
	pause time.Duration
	// answered: the first try is over, or the feed replaced one that others rely on. Used by fared
	// only, once the feed has started.
	answered bool
}

func newFeed(scope string, source *cache.ListWatch, s sink) *feed {
	f := &feed{scope: scope, sink: s}
	f.Feed = watch.New(source, f, f.reduce)
	f.OnChange(f.fared)
	return f
}

// fared handles a new state of the watch, and notifies the sink if it is synced or has given up.
func (f *feed) fared(state watch.State) {
	if errors.Is(state.Err, watch.ErrStopped) {
		return
	}
	first := !f.answered
	f.answered = true
	switch {
	case state.Synced:
		f.sink.synced(f)
	case state.Ended:
		f.sink.lost(f, state.Err, first)
	}
}

func (f *feed) reduce(object metav1.Object) *observed {
	seen := observe(object, f.full)
	if f.full {
		seen.live.reported = reported(object, seen.live.owner, f.statuses)
	}
	return seen
}

// Put implements watch.Sink.
func (f *feed) Put(seen *observed) { f.sink.put(f, seen) }

// Drop implements watch.Sink.
func (f *feed) Drop(seen *observed) { f.sink.drop(f, seen) }

// Replace implements watch.Sink.
func (f *feed) Replace(all []*observed, version string) { f.sink.replace(f, all, version) }
