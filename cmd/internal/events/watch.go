package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

// again is how long after an event of an unknown object the tree is grown again, to see whether the
// object belongs to it by now.
const again = 2 * time.Second

// follower prints events as they come. One goroutine does all of it, but for the watches, which send to
// it by channels.
type follower struct {
	*options
	target *fleet.Cluster
	root   *unstructured.Unstructured
	rows   *output.TableWriter

	scope   scope
	watched map[place]bool
	told    map[types.UID]string // events that were printed, and in which version
	foreign map[types.UID]bool   // objects that do not belong to the tree
	waiting []sighting           // events of objects that are not known
	regrow  <-chan time.Time     // when the tree is grown again; nil for never

	sightings chan sighting
	failures  chan error // why a watch has ended
	watches   int        // how many there are
}

// place is a namespace of a cluster.
type place struct {
	fleet.Site
	namespace string
}

// sighting is an event, and where it was seen; gone says that the API server no longer keeps it.
type sighting struct {
	at    fleet.Site
	event *corev1.Event
	gone  bool
}

// follow prints the events that there are, and further ones as they come, until ctx ends.
func (o *options) follow(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &follower{
		options: o, target: target, root: root,
		rows:  output.NewTableWriter(o.env.Out, output.TableOptions{NoHeaders: o.noHeaders}),
		scope: scope{}, watched: map[place]bool{}, told: map[types.UID]string{}, foreign: map[types.UID]bool{},
		sightings: make(chan sighting), failures: make(chan error),
	}
	grown, err := o.grow(ctx, target, root)
	if err != nil {
		return err
	}
	f.scope.add(grown.Members())
	begun := time.Now()
	if err := f.list(ctx, begun); err != nil {
		return err
	}
	f.watchAll(ctx)
	return f.loop(ctx)
}

// list prints the events that there are. Objects whose events are older than the tree, and that are not
// in it, do not belong to it.
func (f *follower) list(ctx context.Context, begun time.Time) error {
	var seen []sighting
	err := f.scope.list(ctx, func(m *members, event *corev1.Event) {
		seen = append(seen, sighting{at: m.cluster.Site(), event: event})
	}, func(gap error) { f.env.Warnf("events are missing: %s", gap) })
	if err != nil {
		return err
	}
	slices.SortStableFunc(seen, func(a, b sighting) int {
		return newEntry("", a.event).LastSeen.Compare(newEntry("", b.event).LastSeen.Time)
	})
	for _, s := range seen {
		if !f.scope[s.at].has(s.event) && newEntry("", s.event).LastSeen.Time.Before(begun.Add(-time.Minute)) {
			f.foreign[s.event.InvolvedObject.UID] = true
		}
		if err := f.take(s); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) loop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil // the user has seen enough
		case err := <-f.failures:
			if f.watches--; f.watches == 0 {
				return err
			}
			f.env.Warnf("events are missing: %s", err)
		case s := <-f.sightings:
			if err := f.take(s); err != nil {
				return err
			}
		case <-f.regrow:
			f.regrow = nil
			if err := f.growAgain(ctx); err != nil {
				return err
			}
		}
	}
}

// take prints an event if it is about an object of the tree, and keeps it for later if that is not known.
func (f *follower) take(s sighting) error {
	event := s.event
	if s.gone {
		delete(f.told, event.UID)
		return nil
	}
	if f.told[event.UID] == event.ResourceVersion || f.foreign[event.InvolvedObject.UID] {
		return nil
	}
	if !f.scope[s.at].has(event) {
		f.waiting = append(f.waiting, s)
		f.soon()
		return nil
	}
	if gv := event.InvolvedObject.GroupVersionKind(); gv.Group == v1alpha1.Group {
		f.soon() // there may be more objects after it
	}
	f.told[event.UID] = event.ResourceVersion
	return f.print(newEntry(s.at.Name, event))
}

// soon has the tree grown again.
func (f *follower) soon() {
	if f.regrow == nil {
		f.regrow = time.After(again)
	}
}

func (f *follower) print(e Entry) error {
	switch {
	case !f.wants(e):
		return nil
	case f.format.Structured():
		if f.format.String() == "yaml" {
			fmt.Fprintln(f.env.Out, "---")
		}
		return f.format.Print(f.env.Out, e)
	}
	return f.rows.Print(Table([]Entry{e}, Columns{Cluster: true, Namespace: true, Wide: f.format.String() == "wide"}))
}

// growAgain adds what has become part of the tree. What has left it stays: its last events are of
// interest, too. A tree that cannot be grown now is grown at the next event.
func (f *follower) growAgain(ctx context.Context) error {
	waiting := f.waiting
	f.waiting = nil
	c, err := f.target.Client()
	if err != nil {
		return err
	}
	live := f.root.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err == nil {
		f.root = live
	}
	if grown, err := tree.Grow(ctx, f.target, f.root, 0); err == nil {
		f.scope.add(grown.Members())
	}
	for _, s := range waiting {
		if !f.scope[s.at].has(s.event) {
			f.foreign[s.event.InvolvedObject.UID] = true
			continue
		}
		if err := f.take(s); err != nil {
			return err
		}
	}
	f.watchAll(ctx)
	return nil
}

// watchAll watches the namespaces that are not watched yet.
func (f *follower) watchAll(ctx context.Context) {
	for at, m := range f.scope {
		for _, namespace := range m.namespaces() {
			in := place{at, namespace}
			if f.watched[in] {
				continue
			}
			f.watched[in] = true
			f.watches++
			go f.watchOne(ctx, in, m.cluster)
		}
	}
}

// watchOne watches the events of a namespace until ctx ends.
func (f *follower) watchOne(ctx context.Context, in place, cluster *fleet.Cluster) {
	err := fleet.Watch(ctx, cluster, "events", in.namespace, &corev1.Event{}, func(event *corev1.Event, gone bool) {
		select {
		case f.sightings <- sighting{at: in.Site, event: event, gone: gone}:
		case <-ctx.Done():
		}
	})
	if err == nil {
		return
	}
	select {
	case f.failures <- err:
	case <-ctx.Done():
	}
}
