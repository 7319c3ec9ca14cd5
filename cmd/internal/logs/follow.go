package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/tree"
)

const (
	// again is how long after a Pod that is not known the tree is grown again, to see whether the Pod belongs to it.
	again = 2 * time.Second
	// undecided is how long after its creation a Pod may still become part of the tree: its owners may be applied
	// before the object that delivers them says so.
	undecided = 10 * time.Second
)

// follower prints logs as they are written, also those of containers that start later. One goroutine does all of it, but
// for the watches and the logs, which send to it by channels.
type follower struct {
	*options
	target *fleet.Cluster
	root   *unstructured.Unstructured
	to     *lines
	prefix prefixes

	members map[place]map[string]bool // the Pods of the tree, by name
	watched map[place]bool
	foreign map[types.UID]bool       // Pods that do not belong to the tree
	waiting map[types.UID]sighting   // Pods of which that is not known
	begun   map[types.UID]containers // what was followed of each Pod
	regrow  <-chan time.Time         // when the tree is grown again; nil for never

	sightings chan sighting
	failures  chan failure
	ends      chan error // of logs; nil at their end
	watches   int        // how many there are
	open      int        // how many logs are followed
	read      int        // how many were, or are, without an error
	all       sync.WaitGroup
}

// containers are the runs of the containers of a Pod that were followed, or are: the last of each, by how often the
// container was restarted before. A run for which there were too many is below zero.
type containers map[string]int32

// place is a namespace of a cluster.
type place struct {
	fleet.Site
	namespace string
}

// sighting is a Pod, and where it was seen; gone says that the API server no longer has it.
type sighting struct {
	at   *fleet.Cluster
	pod  *corev1.Pod
	gone bool
}

// failure is why a namespace is not watched any more.
type failure struct {
	in  place
	err error
}

// place returns where the Pod was seen.
func (s sighting) place() place { return place{s.at.Site(), s.pod.Namespace} }

// followLogs prints the logs that were found, of which those that are being written go on, and those of the runs of containers
// that begin later, until ctx ends.
func (o *options) followLogs(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured, members []tree.Member, found []stream) error {
	f := &follower{
		options: o, target: target, root: root, to: &lines{w: o.env.Out}, prefix: prefixes{shown: o.prefix},
		members: map[place]map[string]bool{}, watched: map[place]bool{},
		foreign: map[types.UID]bool{}, waiting: map[types.UID]sighting{}, begun: map[types.UID]containers{},
		sightings: make(chan sighting), failures: make(chan failure), ends: make(chan error),
	}
	defer f.all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(found) == 0 {
		fmt.Fprintf(o.env.ErrOut, "No Pods found for %s yet: their logs are shown as they start\n", kinds.Describe(root))
	}
	f.prefix.add(found)
	for _, s := range found {
		if run, started := runOf(s.pod, s.container); started {
			f.begin(ctx, s, run, o.logOptions())
		}
	}
	f.watchAll(ctx, members)
	return f.loop(ctx)
}

// loop returns when ctx ends, or when there is nothing left that could be printed.
func (f *follower) loop(ctx context.Context) error {
	var failed error
	for f.watches > 0 || f.open > 0 {
		select {
		case <-ctx.Done():
			return nil // the user has seen enough
		case denied := <-f.failures:
			f.watches--
			if failed = denied.err; len(f.members[denied.in]) > 0 { // elsewhere, there may never be a Pod
				f.env.Warnf("containers that start later are not followed: %s", failed)
			}
		case err := <-f.ends:
			f.open--
			if err != nil {
				f.read--
				f.env.Warnf("%s", err)
			}
		case s := <-f.sightings:
			f.take(ctx, s)
		case <-f.regrow:
			f.regrow = nil
			f.growAgain(ctx)
		}
	}
	switch {
	case f.read > 0:
		return nil
	case failed != nil:
		return fmt.Errorf("no log could be read: %w", failed)
	default:
		return errors.New("no log could be read")
	}
}

// take follows what runs in a Pod of the tree, and keeps the Pod for later if it is not known whether it is one.
func (f *follower) take(ctx context.Context, s sighting) {
	uid := s.pod.UID
	switch {
	case s.gone:
		delete(f.foreign, uid)
		delete(f.waiting, uid)
		delete(f.begun, uid)
	case f.foreign[uid]:
	case f.members[s.place()][s.pod.Name]:
		f.beginAll(ctx, s)
	default:
		f.waiting[uid] = s
		f.soon()
	}
}

// soon has the tree grown again.
func (f *follower) soon() {
	if f.regrow == nil {
		f.regrow = time.After(again)
	}
}

// growAgain adds what has become part of the tree. A tree that cannot be grown now is grown at the next Pod.
func (f *follower) growAgain(ctx context.Context) {
	c, err := f.target.Client()
	if err != nil {
		return
	}
	begun := time.Now()
	live := f.root.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err == nil {
		f.root = live
	}
	grown, err := tree.Grow(ctx, f.target, f.root, 0)
	if err != nil {
		return
	}
	f.watchAll(ctx, grown.Members())
	waiting := f.waiting
	f.waiting = map[types.UID]sighting{}
	for uid, s := range waiting {
		if !f.members[s.place()][s.pod.Name] && begun.Sub(s.pod.CreationTimestamp.Time) > undecided {
			f.foreign[uid] = true
			continue
		}
		f.take(ctx, s)
	}
}

// beginAll follows the containers of a Pod that run, and were not followed in this run. What they have written before is
// shown, too: they were not there when the command began.
func (f *follower) beginAll(ctx context.Context, s sighting) {
	core, err := clientOf(s.at)
	if err != nil {
		f.env.Warnf("the logs of Pod %s/%s are not followed: %s", s.pod.Namespace, s.pod.Name, err)
		return
	}
	options := f.logOptions()
	options.TailLines, options.SinceSeconds = nil, nil
	for _, name := range containersOf(s.pod) {
		run, started := runOf(s.pod, name)
		if !started || f.container != "" && f.container != name {
			continue
		}
		log := stream{cluster: s.at.Name(), pod: s.pod, container: name, pods: core.Pods(s.pod.Namespace)}
		f.prefix.add([]stream{log})
		f.begin(ctx, log, run, options)
	}
}

// begin follows a run of a container unless it was followed, or there are too many.
func (f *follower) begin(ctx context.Context, s stream, run int32, options *corev1.PodLogOptions) {
	of := f.begun[s.pod.UID]
	if of == nil {
		of = containers{}
		f.begun[s.pod.UID] = of
	}
	last, known := of[s.container]
	switch {
	case known && last >= run:
		return
	case f.open >= f.most:
		if !known || last >= 0 {
			f.env.Warnf("the log of %s is not followed: --max-log-requests is %d", s, f.most)
		}
		of[s.container] = -1 // it is tried again when the Pod changes
		return
	}
	of[s.container] = run
	f.open++
	f.read++
	prefix := f.prefix.of(s)
	f.all.Go(func() {
		err := s.copyTo(ctx, f.to, options, prefix)
		if err != nil {
			err = fmt.Errorf("read the log of %s: %w", s, err)
		}
		send(ctx, f.ends, err)
	})
}

// watchAll adds the Pods of a tree, and watches the Pods of the namespaces that are not watched yet.
func (f *follower) watchAll(ctx context.Context, members []tree.Member) {
	for _, m := range members {
		in := place{m.Cluster.Site(), m.Namespace}
		if m.Namespace == "" || f.members[in] != nil && !isPod(m) {
			continue
		}
		if f.members[in] == nil {
			f.members[in] = map[string]bool{}
		}
		if isPod(m) {
			f.members[in][m.Name] = true
		}
		if !f.watched[in] {
			f.watched[in] = true
			f.watches++
			f.all.Go(func() { f.watch(ctx, m.Cluster, in.namespace) })
		}
	}
}

// watch reports the Pods of a namespace until ctx ends.
func (f *follower) watch(ctx context.Context, at *fleet.Cluster, namespace string) {
	err := fleet.Watch(ctx, at, "pods", namespace, &corev1.Pod{}, func(pod *corev1.Pod, gone bool) {
		send(ctx, f.sightings, sighting{at: at, pod: pod, gone: gone})
	})
	if err != nil {
		send(ctx, f.failures, failure{place{at.Site(), namespace}, err})
	}
}

// send sends unless ctx ends first.
func send[T any](ctx context.Context, to chan<- T, what T) {
	select {
	case to <- what:
	case <-ctx.Done():
	}
}

// runOf returns how often a container was restarted before its latest run that has a log, and whether there is one.
func runOf(pod *corev1.Pod, container string) (int32, bool) {
	for _, of := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, c := range of {
			if c.Name == container {
				return c.RestartCount, c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
			}
		}
	}
	return 0, false
}
