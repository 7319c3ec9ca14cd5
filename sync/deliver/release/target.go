package release

import (
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/keyed"
)

// Target is the cluster that releases are in, under one identity. All three are shared by
// everything that is done there, and are neither modified nor closed. A Target must be comparable.
type Target interface {
	// Config should have no client-side rate limit (QPS -1).
	Config() *rest.Config
	// Mapper is reset when the CRDs of a chart have been created.
	Mapper() meta.RESTMapper
	// Discovery answers from memory.
	Discovery() discovery.CachedDiscoveryInterface
}

// getter is a Target with a configuration and mappings of its own, in the form that Helm needs.
type getter struct {
	target   Target
	config   *rest.Config
	mappings *mappings
}

// mappings asks a RESTMapper once for each kind that it knows: manifests have many objects of a few kinds.
type mappings struct {
	meta.RESTMapper
	known keyed.Map[schema.GroupVersionKind, *meta.RESTMapping]
}

// RESTMapping implements meta.RESTMapper.
func (m *mappings) RESTMapping(kind schema.GroupKind, preferred ...string) (*meta.RESTMapping, error) {
	if len(preferred) != 1 {
		return m.RESTMapper.RESTMapping(kind, preferred...)
	}
	if known, ok := m.known.Lookup(kind.WithVersion(preferred[0])); ok {
		return known, nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, preferred...)
	if err == nil {
		m.known.Put(kind.WithVersion(preferred[0]), found)
	}
	return found, err
}

// ToRESTConfig implements Helm's RESTClientGetter.
func (g getter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

// ToDiscoveryClient implements Helm's RESTClientGetter.
func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.target.Discovery(), nil
}

// ToRESTMapper implements Helm's RESTClientGetter.
func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mappings, nil }

// versions remembers the API server version of each target for versionBelieved, so that no upgrade
// is missed for long.
type versions struct {
	seen keyed.Map[Target, seenVersion]
}

type seenVersion struct {
	version chartutil.KubeVersion
	until   time.Time
}

const versionBelieved = 10 * time.Minute

func (v *versions) of(t Target) (chartutil.KubeVersion, error) {
	if known, ok := v.known(t); ok {
		return known, nil
	}
	info, err := t.Discovery().ServerVersion()
	if err != nil {
		return chartutil.KubeVersion{}, fmt.Errorf("ask for the API server's version: %w", err)
	}
	version := chartutil.KubeVersion{Version: info.GitVersion, Major: info.Major, Minor: info.Minor}
	v.seen.Put(t, seenVersion{version: version, until: time.Now().Add(versionBelieved)})
	return version, nil
}

// known returns the remembered version of a target, and forgets all that are too old.
func (v *versions) known(t Target) (chartutil.KubeVersion, bool) {
	now := time.Now()
	v.seen.DropFunc(func(_ Target, s seenVersion) bool { return now.After(s.until) })
	s, ok := v.seen.Lookup(t)
	return s.version, ok
}

// capabilities returns what templates see of the cluster; Helm itself would discover it again for
// every action.
func (e *Engine) capabilities(t Target) (*chartutil.Capabilities, error) {
	version, err := e.versions.of(t)
	if err != nil {
		return nil, err
	}
	// A group whose API service is down is left out, as in Helm: the chart may not need it.
	kinds, err := action.GetVersionSet(t.Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover API versions: %w", err)
	}
	return &chartutil.Capabilities{
		KubeVersion: version,
		APIVersions: kinds,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, nil
}
