package plain

import (
	"io/fs"
	"path"
	"regexp"

	"waybill.dev/waybill/sync/manifest"
)

// chartFile is the file that makes a folder a Helm chart.
const chartFile = "Chart.yaml"

// ChartMessage says what to do about a folder with a Helm chart among manifests.
const ChartMessage = "the folder is a Helm chart, and is not applied as manifests: to offer it, name it in an ApplicationDefinition " +
	"(spec.versions[].template.source.git); else add the folder to " + ignoreFile + " or to spec.ignore"

// kindOfManifest is in a manifest of that name, and not in what describes a chart.
var kindOfManifest = regexp.MustCompile(`(?m)^["']?kind["']?[ \t]*:`)

// chart reports whether a directory holds a Helm chart, and notifies the options of it. Its templates
// are no manifests, although some may look like it. A Chart.yaml that is ignored makes no chart.
func (r *renderer) chart(dir string, entries []fs.DirEntry) (bool, error) {
	name := path.Join(dir, chartFile)
	for _, e := range entries {
		if e.Name() != chartFile || !e.Type().IsRegular() || r.ignore.match(name, false) {
			continue
		}
		content, err := r.content(name)
		if content == nil || err != nil {
			return content == nil, err
		}
		if kindOfManifest.Match(content) {
			return false, nil
		}
		if r.opts.Chart != nil {
			r.opts.Chart(dir)
			return true, nil
		}
		r.problem(name, manifest.ReasonInvalidManifest, ChartMessage)
		return true, nil
	}
	return false, nil
}
