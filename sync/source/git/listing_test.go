package git_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// addReferences makes many references of the server's repository point to a commit.
func (o *origin) addReferences(t *testing.T, pattern, to string, count int) {
	t.Helper()
	var lines strings.Builder
	for i := range count {
		fmt.Fprintf(&lines, "create "+pattern+" %s\n", i, to)
	}
	cmd := exec.CommandContext(t.Context(), "git", "update-ref", "--stdin")
	cmd.Dir, cmd.Stdin = o.bare, strings.NewReader(lines.String())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// crowd is a repository with far more references than branches and tags.
type crowd struct {
	*origin
	// main is the commit of the branch and a tag; change and archived are those of other references, the
	// latter by way of a tag.
	main, change, archived string
}

func newCrowd(t *testing.T, s *server) crowd {
	t.Helper()
	o := s.newOrigin(t, map[string]string{"a.txt": "main"})
	c := crowd{origin: o, main: o.git(t, "rev-parse", "HEAD")}
	o.git(t, "tag", "v1.0.0")
	o.git(t, "push", "--quiet", "--tags", "origin")
	o.git(t, "checkout", "--quiet", "-b", "proposed")
	c.archived = o.push(t, map[string]string{"a.txt": "archived"})
	o.git(t, "tag", "--annotate", "--message", "archived", "archived")
	o.git(t, "push", "--quiet", "origin", "archived:refs/archive/1")
	c.change = o.push(t, map[string]string{"a.txt": "change"})
	o.git(t, "push", "--quiet", "origin", "HEAD:refs/pull/420/head", ":proposed")
	o.addReferences(t, "refs/changes/%d", c.main, 200)
	o.addReferences(t, "refs/pipelines/%d", c.change, 200)
	return c
}

// K20, K21: a server names every pull request there ever was, whatever one asks for.
func TestResolve_passesOverReferencesThatNobodyAskedFor(t *testing.T) {
	limits := git.WithLimits(git.Limits{ReferenceBytes: 1000})
	overHTTPS, overSSH := newHTTPS(t), newSSH(t)
	for transport, c := range map[string]crowd{"https": newCrowd(t, overHTTPS), "ssh": newCrowd(t, overSSH.server)} {
		repo := c.https(overHTTPS)
		if transport == "ssh" {
			repo = overSSH.repository(c.name)
		}
		cases := map[string]struct {
			reason string
			ref    git.Ref
			want   git.Revision
			text   string
		}{
			"Default":  {"the default branch", git.Ref{}, git.Revision{Ref: "main", Commit: c.main}, "main"},
			"Branch":   {"a branch", git.Ref{Branch: "main"}, git.Revision{Ref: "main", Commit: c.main}, "main"},
			"SemVer":   {"any tag may be meant", git.Ref{SemVer: ">=1.0.0"}, git.Revision{Ref: "v1.0.0", Commit: c.main}, "main"},
			"FullName": {"a branch by its full name", git.Ref{Name: "refs/heads/main"}, git.Revision{Ref: "refs/heads/main", Commit: c.main}, "main"},
			"Name":     {"one of the many", git.Ref{Name: "refs/pull/420/head"}, git.Revision{Ref: "refs/pull/420/head", Commit: c.change}, "change"},
			"Commit":   {"servers hand out what a reference points to", git.Ref{Commit: c.change}, git.Revision{Commit: c.change}, "change"},
			"Peeled":   {"even if it is that of a tag", git.Ref{Commit: c.archived}, git.Revision{Commit: c.archived}, "archived"},
		}
		for name, tc := range cases {
			t.Run(name+"/"+transport, func(t *testing.T) {
				tree := openRef(t, newStore(t, limits), repo, tc.ref)
				assert.Equal(t, tc.want, tree.Revision(), tc.reason)
				assert.Equal(t, tc.text, readFile(t, tree, "a.txt"), tc.reason)
			})
		}
	}
}

// The limits that remain: on what must be kept, and on what must be read.
func TestResolve_limitsOnReferences(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	o.addReferences(t, "refs/heads/feature/%d", o.git(t, "rev-parse", "HEAD"), 50)
	for says, limits := range map[string]git.Limits{
		"limit AdvertisementBytes is 100": {AdvertisementBytes: 100},
		"limit ReferenceBytes is 1000":    {ReferenceBytes: 1000},
	} {
		_, err := newStore(t, git.WithLimits(limits)).Resolve(t.Context(), o.https(s), git.Ref{})
		require.ErrorIs(t, err, git.ErrLimit)
		assert.ErrorContains(t, err, says)
	}
}
