package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	"waybill.dev/waybill/cmd/internal/fleet"
)

const (
	// maxGroups and maxNameLength bound what is taken for a user: each request to an API server carries it.
	maxGroups     = 500
	maxNameLength = 256
	// maxViewers is how many users are remembered, with their connections and rights, viewerFor how long after their
	// last request.
	maxViewers = 500
	viewerFor  = time.Hour
)

// reserved is what the names of users and groups begin with that Kubernetes gives a meaning to. Nobody is taken for one
// of them, whatever a provider or proxy says: who may name users there must not be able to make an administrator of
// the hub, or a part of Kubernetes, out of one.
const reserved = "system:"

// checkIdentity returns why nobody is let in by these names; nil if somebody is.
func checkIdentity(name string, groups []string) error {
	if err := checkName("user", name); err != nil {
		return err
	}
	if len(groups) > maxGroups {
		return fmt.Errorf("user %q is in %d groups, and %d are the most: have fewer of them told to the dashboard", name, len(groups), maxGroups)
	}
	for _, group := range groups {
		if err := checkName("group", group); err != nil {
			return fmt.Errorf("user %q: %w", name, err)
		}
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s has no name", what)
	case len(name) > maxNameLength:
		return fmt.Errorf("the name of a %s is longer than %d bytes", what, maxNameLength)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the name of %s %q has control characters", what, name)
	case strings.HasPrefix(name, reserved):
		return fmt.Errorf("%s %q: names that begin with %s are reserved for Kubernetes, and nobody is let in with them", what, name, reserved)
	}
	return nil
}

// viewers are those who use a dashboard in the hub.
type viewers struct {
	hub   *fleet.Cluster // as the dashboard
	reach *reach
	known *utilcache.LRUExpireCache
}

func newViewers(hub *fleet.Cluster, by *reach) *viewers {
	return &viewers{hub: hub, reach: by, known: utilcache.NewLRUExpireCache(maxViewers)}
}

// of returns the viewer of that name and groups, which checkIdentity has let in. Kubernetes adds system:authenticated.
func (v *viewers) of(name string, groups []string) *viewer {
	groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	key, _ := json.Marshal(append([]string{name}, groups...)) // strings can always be written
	found, ok := v.known.Get(string(key))
	user, known := found.(*viewer)
	if !ok || !known {
		user = newViewer(name, groups, v.hub.As(name, groups...))
		user.reach = func(ctx context.Context, user *viewer, to types.NamespacedName) (*fleet.Cluster, error) { return v.reach.cluster(ctx, user, to) }
	}
	v.known.Add(string(key), user, viewerFor)
	return user
}
