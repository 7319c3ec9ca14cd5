package plain

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"waybill.dev/waybill/sync/manifest"
)

// ignoreFile is the name of files with patterns of what not to render.
const ignoreFile = ".waybillignore"

// ignorer decides what not to render. Patterns are added while directories are walked; each applies
// below the directory that it comes from.
type ignorer struct {
	// found holds the built-in patterns and those of ignore files; option holds those of the user,
	// which win.
	found, option []gitignore.Pattern
	matcher       gitignore.Matcher
}

func newIgnorer(option string) *ignorer {
	i := &ignorer{
		found:  append(sourceignore.VCSPatterns(nil), sourceignore.DefaultPatterns(nil)...),
		option: sourceignore.ReadPatterns(strings.NewReader(option), nil),
	}
	i.update()
	return i
}

// add adds the patterns of a file in dir.
func (i *ignorer) add(dir, patterns string) {
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	i.found = append(i.found, sourceignore.ReadPatterns(strings.NewReader(patterns), domain)...)
	i.update()
}

func (i *ignorer) update() {
	all := append(i.found[:len(i.found):len(i.found)], i.option...)
	i.matcher = sourceignore.NewMatcher(all)
}

// match reports whether to leave out the file or directory name.
func (i *ignorer) match(name string, isDir bool) bool {
	return i.matcher.Match(strings.Split(name, "/"), isDir)
}

// readIgnoreFile adds the patterns of a directory, if it has any. If they cannot be used, that is a
// Problem, and ok is false: then it is not known what not to render.
func (r *renderer) readIgnoreFile(dir string, entries []fs.DirEntry) (ok bool, err error) {
	for _, e := range entries {
		if e.Name() != ignoreFile || e.IsDir() {
			continue
		}
		name := path.Join(dir, ignoreFile)
		content, err := r.content(name)
		if content == nil || err != nil {
			return false, err
		}
		if r.ignored += int64(len(content)); r.ignored > r.limits.IgnoreBytes {
			r.problem(name, manifest.ReasonLimitExceeded,
				fmt.Sprintf("the ignore files are too large together, so nothing beside this one is rendered (limit IgnoreBytes is %d)", r.limits.IgnoreBytes))
			return false, nil
		}
		r.ignore.add(dir, string(content))
	}
	return true, nil
}
