package fleet

import "fmt"

// Place is where something is looked up or done for a user, whichever way they ask for it.
type Place struct {
	// Hub drives Target, and has the definitions and the credentials of sources. It is Target itself where
	// that is a hub.
	Hub, Target *Cluster
	// SystemNamespace of the hub.
	SystemNamespace string
	// Impersonated says that the credentials of Target already impersonate the user, who therefore cannot
	// impersonate a ServiceAccount there.
	Impersonated bool
	// Warn reports to the user what is not known, although the result is good without it. It may be called
	// by several goroutines.
	Warn func(format string, args ...any)
}

// NewPlace returns the place for what is done in a cluster. hub is the one that the user asked; if the
// target is behind a seed, the seed takes its place.
func NewPlace(hub, target *Cluster, systemNamespace string, warn func(string, ...any)) Place {
	return Place{Hub: target.HubOf(hub), Target: target, SystemNamespace: systemNamespace, Warn: warn}
}

// NamesCluster reports whether Target is a cluster that the user named, and not just the one that they ask.
func (p Place) NamesCluster() bool { return p.Target.Key.Name != "" }

// Describe returns what messages call an object of the target.
func (p Place) Describe(kind, namespace, name string) string {
	text := fmt.Sprintf("%s/%s in %s", kind, name, namespace)
	if p.NamesCluster() {
		text += " of cluster " + p.Target.Name()
	}
	return text
}
