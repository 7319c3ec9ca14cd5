package dashboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The tree is a treegrid and a drawing, with the same objects.
func TestTree_gridAndDrawing(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	gs := syncOf(ns)
	commit := strings.Repeat("ab", 20)
	gs.Spec.URL = "https://github.com/example/team.git"
	gs.Status.Revision, gs.Status.AttemptedRevision = "main@sha1:"+commit, "main@sha1:"+commit
	create(t, api, gs)
	got := open(t, api.RESTConfig(), ns).get(objectLink("", "", "gitsyncs", ns, "team") + "/tree").body
	for _, text := range []string{
		`<tr role="row" aria-level="1" aria-posinset="1" aria-setsize="1" aria-expanded="true" tabindex="0">`, `aria-level="2"`, `tabindex="-1"`,
		"https://github.com/example/team/commit/" + commit, `<svg `, `class="edge"`, "GitSync team in namespace " + ns,
	} {
		assert.Contains(t, got, text)
	}
}
