package healthcache

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/health"
)

// looks are the pauses before each list of the Pods of a workload that is not healthy: an image that
// cannot be pulled, say, changes its Pods but not the workload, so there would be no event. After the
// last one, they are listed again when the workload changes.
var looks = []time.Duration{3 * time.Second, 20 * time.Second, 2 * time.Minute}

const (
	// podsPerLook is how many Pods of a workload are listed.
	podsPerLook = 20
	// looksAtATime is for how many workloads Pods are listed at a time.
	looksAtATime = 4
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// pods is what is known of the Pods of a workload that is not healthy. It is guarded by the lock of Cache.
type pods struct {
	// problem is what is wrong with them, as far as they say.
	problem string
	// next is the timer of the next list, if there is one.
	next *time.Timer
	// looks counts those that were scheduled: only the last of them is still wanted.
	looks int
}

// end forgets what the Pods have said, and does not list them any more.
func (p *pods) end() {
	if p.next != nil {
		p.next.Stop()
	}
	*p = pods{looks: p.looks + 1}
}

// told returns the answer with what the Pods say.
func (e *entry) told() Result {
	if e.pods.problem == "" {
		return e.result
	}
	told := e.result
	if told.Message != "" {
		told.Message += "; "
	}
	told.Message += e.pods.problem
	return told
}

// follow lists the Pods of a workload while it is not healthy, from now on at the pauses of looks. What
// they said before stays until then, so that it does not flap with each version.
func (c *Cache) follow(q Query, result Result, object *unstructured.Unstructured) {
	if result.Status != health.InProgress && result.Status != health.Failed {
		return
	}
	selector := health.PodsOf(object)
	if selector == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLater(q, selector.String(), 0)
}

// lookLater schedules a look. The caller holds the lock.
func (c *Cache) lookLater(q Query, selector string, look int) {
	e := c.entries[q.Ref]
	if e == nil || e.uid != q.UID || e.result.Status == health.Current || c.ctx.Err() != nil {
		return
	}
	if e.pods.next != nil {
		e.pods.next.Stop()
	}
	e.pods.looks++
	if number := e.pods.looks; look < len(looks) {
		e.pods.next = time.AfterFunc(looks[look], func() { c.look(q, selector, look, number) })
	}
}

// look lists the Pods of a workload, unless another list was scheduled meanwhile. One that fails says
// nothing: the identity that is used may lack the right to list Pods.
func (c *Cache) look(q Query, selector string, look, number int) {
	select {
	case c.looking <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	defer func() { <-c.looking }()
	c.mu.Lock()
	wanted := c.expects(q, number) != nil
	c.mu.Unlock()
	if !wanted {
		return
	}
	problem, err := c.podProblem(q.Namespace, selector)
	c.mu.Lock()
	e := c.expects(q, number)
	if e == nil {
		c.mu.Unlock()
		return
	}
	before := e.told()
	if err == nil {
		e.pods.problem = problem
	}
	changed := e.told() != before
	c.lookLater(q, selector, look+1)
	c.mu.Unlock()
	if changed && c.ctx.Err() == nil {
		c.options.Changed(q.Ref)
	}
}

// expects returns the entry of an object if that list of its Pods is still wanted, else nil. The caller
// holds the lock.
func (c *Cache) expects(q Query, number int) *entry {
	if e := c.entries[q.Ref]; e != nil && e.uid == q.UID && e.pods.looks == number {
		return e
	}
	return nil
}

func (c *Cache) podProblem(namespace, selector string) (string, error) {
	ctx, cancel := context.WithTimeout(c.ctx, readLimit)
	defer cancel()
	list, err := c.target.Dynamic().Resource(podResource).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: podsPerLook})
	if err != nil {
		return "", err
	}
	return health.PodProblems(list.Items), nil
}
