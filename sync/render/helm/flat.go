package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
)

// flatKey is the value in which a flat chart has its texts.
const flatKey = "files"

// flatTemplate writes the text of a flat chart that belongs to the template's path. The text is a value,
// and not part of the template, so that template syntax in it stays what it is.
const flatTemplate = `{{ index .Values.` + flatKey + ` .Template.Name }}`

// Flat returns a chart, and values for it, of which Helm makes what was rendered: the same texts under the
// same paths. Neither is fit to be recorded.
func (r *Rendered) Flat() (*chart.Chart, map[string]any, error) {
	metadata := *r.Chart.Metadata
	// What was rendered has been checked against these, or chosen by them.
	metadata.Dependencies, metadata.KubeVersion, metadata.Type = nil, "", ""
	flat := &chart.Chart{Metadata: &metadata}
	texts := make(map[string]any, len(r.Files))
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		within, ok := strings.CutPrefix(name, flat.ChartFullPath()+"/")
		if !ok || path.Clean(within) != within {
			return nil, nil, fmt.Errorf("%w: template %s is not within chart %s", ErrRender, name, flat.Name())
		}
		flat.Templates = append(flat.Templates, &chart.File{Name: within, Data: []byte(flatTemplate)})
		texts[name] = r.Files[name]
	}
	return flat, map[string]any{flatKey: texts}, nil
}

// Hooked returns the paths of the texts that may have hooks in them.
func (r *Rendered) Hooked() map[string]bool {
	found := map[string]bool{}
	for name, text := range r.Files {
		if strings.Contains(text, release.HookAnnotation) {
			found[name] = true
		}
	}
	return found
}
