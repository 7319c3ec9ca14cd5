package cluster

import (
	"fmt"
	"runtime"
	"sync"
	"weak"

	"k8s.io/client-go/rest"
)

// views holds the impersonated views of one cluster that are in use. A view that is no longer
// referenced is garbage collected; as long as it is referenced, As returns the same one.
type views struct {
	mu     sync.Mutex
	byUser map[string]weak.Pointer[Cluster]
}

// As returns the cluster as another user sees it, by impersonation. The user is in the groups
// that the API server gives such a user: for a ServiceAccount, those of its namespace. The view
// shares name, context, connections, breaker, mapper and discovery, since discovery is the same for
// every user. As is cheap, and returns the same view for the same user as long as it is in use.
func (c *Cluster) As(user string) (*Cluster, error) {
	c.views.mu.Lock()
	defer c.views.mu.Unlock()
	if view := c.views.byUser[user].Value(); view != nil {
		return view, nil
	}
	view, err := c.impersonate(user)
	if err != nil {
		return nil, fmt.Errorf("impersonate %s: %w", user, err)
	}
	pointer := weak.Make(view)
	c.views.byUser[user] = pointer
	runtime.AddCleanup(view, c.views.forget, forgotten{user: user, view: pointer})
	return view, nil
}

func (c *Cluster) impersonate(user string) (*Cluster, error) {
	view := &Cluster{
		name: c.name, uid: c.uid, ctx: c.ctx, kinds: c.kinds,
		lost: c.lost, returned: c.returned, holds: c.holds,
		discovery: c.discovery, mapper: c.mapper,
		views: newViews(), ledger: c.ledger,
	}
	view.config = rest.CopyConfig(c.config)
	view.config.Impersonate = rest.ImpersonationConfig{UserName: user}
	httpClient, err := rest.HTTPClientFor(view.config)
	if err != nil {
		return nil, fmt.Errorf("build http client: %w", err)
	}
	if err := view.connect(httpClient); err != nil {
		return nil, err
	}
	return view, nil
}

func newViews() *views { return &views{byUser: map[string]weak.Pointer[Cluster]{}} }

// forgotten identifies a view that was garbage collected.
type forgotten struct {
	user string
	view weak.Pointer[Cluster]
}

// forget drops the entry of a view, unless another view has taken its place.
func (v *views) forget(f forgotten) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byUser[f.user] == f.view {
		delete(v.byUser, f.user)
	}
}
