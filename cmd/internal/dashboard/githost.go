package dashboard

import (
	"fmt"
	"net/url"
	"strings"

	"waybill.dev/waybill/sync/source/git"
)

// forge is how a git host addresses what is in a repository.
type forge struct {
	// marks are parts of the names of its hosts.
	marks []string
	// file has the address of a file below that of its repository, line that of a line, and commit that of a commit.
	file, line, commit string
}

// forges are told apart by the names of their hosts: a repository does not say which one it is on.
var forges = []forge{
	{[]string{"github"}, "/blob/%s/%s", "#L%d", "/commit/%s"},
	{[]string{"gitlab"}, "/-/blob/%s/%s", "#L%d", "/-/commit/%s"},
	{[]string{"gitea", "forgejo", "codeberg"}, "/src/commit/%s/%s", "#L%d", "/commit/%s"},
}

// fileLink returns the address of a file of a repository in a browser, at the commit of a revision; empty if the host is
// not one whose addresses are known, or there is no commit. line is 0 for none.
func fileLink(repository, revision, file string, line int32) string {
	base, of := forgeOf(repository)
	commit := commitOf(revision)
	if of == nil || commit == "" || file == "" {
		return ""
	}
	parts := strings.Split(strings.Trim(file, "/"), "/")
	for i, part := range parts {
		if part == "." || part == ".." {
			return ""
		}
		parts[i] = url.PathEscape(part)
	}
	link := base + fmt.Sprintf(of.file, commit, strings.Join(parts, "/"))
	if line > 0 {
		link += fmt.Sprintf(of.line, line)
	}
	return link
}

// commitLink returns the address of the commit of a revision; empty as fileLink.
func commitLink(repository, revision string) string {
	base, of := forgeOf(repository)
	commit := commitOf(revision)
	if of == nil || commit == "" {
		return ""
	}
	return base + fmt.Sprintf(of.commit, commit)
}

func commitOf(revision string) string {
	parsed, ok := git.ParseRevision(revision)
	if !ok {
		return ""
	}
	return parsed.Commit
}

// forgeOf returns the address of a repository in a browser, and how what is in it is addressed; nil if that is not known.
// It carries over neither users nor passwords.
func forgeOf(repository string) (base string, of *forge) {
	u, err := url.Parse(repository)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
		return "", nil
	}
	path := strings.TrimSuffix(strings.Trim(u.EscapedPath(), "/"), ".git")
	if path == "" || strings.Contains(path, "..") {
		return "", nil
	}
	scheme, host := u.Scheme, u.Host
	if scheme == "ssh" {
		scheme, host = "https", u.Hostname() // its port is that of ssh
	}
	for i := range forges {
		for _, mark := range forges[i].marks {
			for label := range strings.SplitSeq(strings.ToLower(u.Hostname()), ".") {
				if strings.HasPrefix(label, mark) {
					return scheme + "://" + host + "/" + path, &forges[i]
				}
			}
		}
	}
	return "", nil
}
