package cluster

import (
	"fmt"
	"runtime"
	"weak"

	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/keyed"
)

// views holds the impersonated views of one cluster that are in use. A view that is no longer
// referenced is garbage collected; as long as it is referenced, As returns the same one.
type views struct {
	byUser keyed.Map[string, weak.Pointer[Cluster]]
}

// As returns the cluster as another user sees it, by impersonation. The user is in the groups
// that the API server gives such a user: for a ServiceAccount, those of its namespace. The view
// shares name, context, connections, breaker, mapper and discovery, since discovery is the same for
// every user. As is cheap, and returns the same view for the same user as long as it is in use.
func (c *Cluster) As(user string) (view *Cluster, err error) {
	c.views.byUser.Change(user, func(known weak.Pointer[Cluster]) (weak.Pointer[Cluster], bool) {
		if view = known.Value(); view != nil {
			return known, true
		}
		if view, err = c.impersonate(user); err != nil {
			return known, false
		}
		pointer := weak.Make(view)
		runtime.AddCleanup(view, c.views.forget, forgotten{user: user, view: pointer})
		return pointer, true
	})
	if err != nil {
		return nil, fmt.Errorf("impersonate %s: %w", user, err)
	}
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

func newViews() *views { return &views{} }

// forgotten identifies a view that was garbage collected.
type forgotten struct {
	user string
	view weak.Pointer[Cluster]
}

// forget drops the entry of a view, unless another view has taken its place.
func (v *views) forget(f forgotten) {
	v.byUser.Change(f.user, func(known weak.Pointer[Cluster]) (weak.Pointer[Cluster], bool) {
		return known, known != f.view && known != weak.Pointer[Cluster]{}
	})
}
