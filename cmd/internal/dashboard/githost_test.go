package dashboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Links lead to the git host, and nowhere else.
func TestFileLink(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	for name, tc := range map[string]struct {
		reason, repository, file string
		line                     int32
		want                     string
	}{
		"GitHub":          {"by its host", "https://github.com/example/team.git", "apps/web.yaml", 12, "https://github.com/example/team/blob/" + commit + "/apps/web.yaml#L12"},
		"GitLab":          {"groups are nested", "https://gitlab.example.com/a/b/team.git", "web.yaml", 0, "https://gitlab.example.com/a/b/team/-/blob/" + commit + "/web.yaml"},
		"Forgejo":         {"by its host", "https://codeberg.org/example/team", "web.yaml", 3, "https://codeberg.org/example/team/src/commit/" + commit + "/web.yaml#L3"},
		"Gitea with port": {"a port of the web", "https://gitea.example.com:3000/example/team.git", "web.yaml", 0, "https://gitea.example.com:3000/example/team/src/commit/" + commit + "/web.yaml"},
		"ssh":             {"its port is not that of the web", "ssh://git@github.com:22/example/team.git", "web.yaml", 0, "https://github.com/example/team/blob/" + commit + "/web.yaml"},
		"password":        {"it is not handed out", "https://user:secret@github.com/example/team.git", "web.yaml", 0, "https://github.com/example/team/blob/" + commit + "/web.yaml"},
		"name in a path":  {"a file may be called anything", "https://github.com/example/team", "a b/<x>#?.yaml", 0, "https://github.com/example/team/blob/" + commit + "/a%20b/%3Cx%3E%23%3F.yaml"},
		"unknown host":    {"its addresses are not known", "https://git.example.com/team.git", "web.yaml", 0, ""},
		"look-alike":      {"a host that only contains the name", "https://notgithub.example.com/example/team.git", "web.yaml", 0, ""},
		"out of it":       {"that is not in the repository", "https://github.com/example/team", "../../other/web.yaml", 0, ""},
		"out of the URL":  {"nor is that one", "https://github.com/../x", "web.yaml", 0, ""},
		"script":          {"browsers would run it", "javascript://github.com/%0aalert(1)", "web.yaml", 0, ""},
		"no file":         {"there is nothing to look at", "https://github.com/example/team", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, fileLink(tc.repository, "main@sha1:"+commit, tc.file, tc.line), tc.reason)
		})
	}
	assert.Empty(t, fileLink("https://github.com/example/team", "main", "web.yaml", 0), "no commit, no link")
	assert.Equal(t, "https://gitlab.com/a/team/-/commit/"+commit, commitLink("https://gitlab.com/a/team.git", "sha1:"+commit))
}
