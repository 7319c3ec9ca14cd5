package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

const (
	// maxGroups and maxNameLength bound the identity of a user: each request to an API server carries it.
	maxGroups     = 500
	maxNameLength = 256
	// maxViewers is how many users are remembered, with their connections and rights, viewerFor how long after their
	// last request.
	maxViewers = 500
	viewerFor  = time.Hour
)

// reserved is what the names of users and groups begin with that Kubernetes gives a meaning to. They are refused,
// whatever a provider or proxy says: who may name users there must not be able to make an administrator of the hub, or a
// component of Kubernetes, out of one.
const reserved = "system:"

// checkIdentity returns why a user of these names is refused; nil if they are let in.
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
	case strings.TrimSpace(name) != name:
		// HTTP/1.1 drops it from headers: the API server would be told another name than the one that is checked here.
		return fmt.Errorf("the name of %s %q begins or ends with white space: have the provider or proxy send it without", what, name)
	case strings.HasPrefix(name, reserved):
		return fmt.Errorf("%s %q: names that begin with %s are reserved for Kubernetes, and cannot sign in", what, name, reserved)
	}
	return nil
}

// viewers are those who use a dashboard in the hub.
type viewers struct {
	reach *reach
	now   func() time.Time

	mu    sync.Mutex
	known *utilcache.LRUExpireCache
}

func newViewers(by *reach) *viewers {
	return &viewers{reach: by, now: time.Now, known: utilcache.NewLRUExpireCache(maxViewers)}
}

// of returns the viewer of that name and groups, which checkIdentity has let in. Kubernetes adds system:authenticated.
func (v *viewers) of(name string, groups []string) *viewer {
	groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	key := strings.Join(append([]string{name}, groups...), "\n") // no name has one
	v.mu.Lock()
	defer v.mu.Unlock()
	found, _ := v.known.Get(key)
	user, known := found.(*viewer)
	if !known {
		user = newViewer(name, groups, v.reach.as(name, groups))
		user.now = v.now
	}
	v.known.Add(key, user, viewerFor)
	return user
}
