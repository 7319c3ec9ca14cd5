package release

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"

	"waybill.dev/waybill/sync/render/helm"
)

// sorted is the manifest of what was rendered, as Helm would make it: in the order of the kinds, without hooks,
// and marked. It is the post-renderer by which Helm gets it.
type sorted struct {
	stamp helm.Stamp
	// hooked are the names of the texts that may have hooks in them.
	hooked map[string]bool
	// manifest is only there if known says so. Otherwise Helm is to make it, or to say why it cannot.
	manifest string
	known    bool
}

// sorted returns the manifest of what was rendered.
func (m *Memo) sorted(rendered *helm.Rendered, stamp helm.Stamp) *sorted {
	parts := []string{"sorted"}
	for _, texts := range []map[string]string{rendered.Files, stamp.Labels, stamp.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			parts = append(parts, name, texts[name])
		}
		parts = append(parts, "")
	}
	s := &sorted{stamp: stamp, hooked: rendered.Hooked()}
	var err error
	s.manifest, err = m.of(memoKeyOf(parts...), func() (string, error) { return s.sort(rendered.Files) })
	s.known = err == nil
	return s
}

// errHidden is the error for hooks where none were found.
var errHidden = errors.New("hooks are not where they were found")

// sort returns the manifest of rendered texts.
func (s *sorted) sort(files map[string]string) (string, error) {
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name, _ string) bool { return helm.IsNotes(name) })
	hooks, objects, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(hooks, func(h *helmrelease.Hook) bool { return !s.hooked[h.Path] }) {
		return "", errHidden
	}
	var all bytes.Buffer
	for _, o := range objects {
		fmt.Fprintf(&all, "---\n# Source: %s\n%s\n", o.Name, o.Content)
	}
	marked, err := s.stamp.Run(&all)
	if err != nil {
		return "", err
	}
	return marked.String(), nil
}

// left returns what Helm still has to read of what was rendered: hooks and notes, if the rest is known.
func (s *sorted) left(rendered *helm.Rendered) *helm.Rendered {
	if !s.known {
		return rendered
	}
	files := maps.Clone(rendered.Files)
	maps.DeleteFunc(files, func(name, _ string) bool { return !s.hooked[name] && !helm.IsNotes(name) })
	return &helm.Rendered{Chart: rendered.Chart, Files: files}
}

// Run implements Helm's postrender.PostRenderer.
func (s *sorted) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	if s.known {
		return bytes.NewBufferString(s.manifest), nil
	}
	return s.stamp.Run(manifests)
}
