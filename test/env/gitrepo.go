package env

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GitRepo is a repository on a GitServer with a working copy that a test commits to. It pushes
// through the file system, so that it works while the server is down.
type GitRepo struct {
	server *GitServer
	name   string
	dir    string
}

// CreateRepo creates a repository whose default branch is main, with one empty commit.
func (g *GitServer) CreateRepo(ctx context.Context, name string) (*GitRepo, error) {
	dir, err := tempDir("git-work")
	if err != nil {
		return nil, err
	}
	r := &GitRepo{server: g, name: name, dir: dir}
	bare := filepath.Join(g.root, name+".git")
	steps := [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", bare},
		// As with the big hosts, any existing commit can be fetched by its hash.
		{"--git-dir=" + bare, "config", "uploadpack.allowAnySHA1InWant", "true"},
		{"--git-dir=" + bare, "config", "uploadpack.allowFilter", "true"},
		{"init", "--quiet", "--initial-branch=main"},
		{"remote", "add", "origin", bare},
		{"commit", "--quiet", "--allow-empty", "--message=begin"},
		{"push", "--quiet", "--set-upstream", "origin", "main"},
	}
	for _, step := range steps {
		if _, err := r.Git(ctx, step...); err != nil {
			return nil, fmt.Errorf("create repository %s: %w", name, err)
		}
	}
	return r, nil
}

// URL returns the repository's HTTPS address.
func (r *GitRepo) URL() string { return r.server.URL(r.name) }

// SSHURL returns the repository's SSH address.
func (r *GitRepo) SSHURL() string { return r.server.SSHURL(r.name) }

// Dir returns the working copy. Changes there become part of the next Commit.
func (r *GitRepo) Dir() string { return r.dir }

// Commit writes the files, by path below the working copy, commits all changes there and pushes the
// current branch. It returns the commit's hash. Without any change the commit is empty.
func (r *GitRepo) Commit(ctx context.Context, files map[string]string) (string, error) {
	if err := r.write(files); err != nil {
		return "", err
	}
	return r.publish(ctx, []string{"commit", "--quiet", "--allow-empty", "--message=change"}, "push", "--quiet", "origin", "HEAD")
}

// CommitFS is like Commit, with the files of fsys below the folder under.
func (r *GitRepo) CommitFS(ctx context.Context, under string, fsys fs.FS) (string, error) {
	target := filepath.Join(r.dir, filepath.FromSlash(under))
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(target, filepath.FromSlash(path)), content)
	})
	if err != nil {
		return "", fmt.Errorf("copy files into %s: %w", r.name, err)
	}
	return r.Commit(ctx, nil)
}

// Delete removes files or folders, commits and pushes. It returns the commit's hash.
func (r *GitRepo) Delete(ctx context.Context, paths ...string) (string, error) {
	if _, err := r.Git(ctx, append([]string{"rm", "-r", "--quiet", "--"}, paths...)...); err != nil {
		return "", fmt.Errorf("delete from %s: %w", r.name, err)
	}
	return r.Commit(ctx, nil)
}

// Amend replaces the branch's last commit with one that has the files added, and force-pushes. It
// returns the new commit's hash; the old commit is no longer reachable.
func (r *GitRepo) Amend(ctx context.Context, files map[string]string) (string, error) {
	if err := r.write(files); err != nil {
		return "", err
	}
	return r.publish(ctx, []string{"commit", "--quiet", "--allow-empty", "--amend", "--message=changed"}, "push", "--quiet", "--force", "origin", "HEAD")
}

// Branch creates a branch at the current commit and pushes it; later commits go there.
func (r *GitRepo) Branch(ctx context.Context, name string) error {
	if _, err := r.Git(ctx, "switch", "--quiet", "--create", name); err != nil {
		return fmt.Errorf("create branch in %s: %w", r.name, err)
	}
	_, err := r.Git(ctx, "push", "--quiet", "origin", "HEAD")
	return err
}

// Tag creates an annotated tag at the current commit, or moves an existing one there, and pushes
// it.
func (r *GitRepo) Tag(ctx context.Context, name string) error {
	if _, err := r.Git(ctx, "tag", "--force", "--annotate", "--message="+name, name); err != nil {
		return fmt.Errorf("tag %s: %w", r.name, err)
	}
	_, err := r.Git(ctx, "push", "--quiet", "--force", "origin", "refs/tags/"+name)
	return err
}

// Git runs git in the working copy, isolated from the machine's own configuration, and returns its
// output.
func (r *GitRepo) Git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	cmd.Env = gitEnvironment()
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(failed.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func (r *GitRepo) publish(ctx context.Context, commit []string, push ...string) (string, error) {
	for _, step := range [][]string{{"add", "--all"}, commit, push} {
		if _, err := r.Git(ctx, step...); err != nil {
			return "", fmt.Errorf("commit to %s: %w", r.name, err)
		}
	}
	return r.Git(ctx, "rev-parse", "HEAD")
}

func (r *GitRepo) write(files map[string]string) error {
	for path, content := range files {
		if err := writeFile(filepath.Join(r.dir, filepath.FromSlash(path)), []byte(content)); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// gitEnvironment returns our environment without the effects of a surrounding git command or the
// user's configuration.
func gitEnvironment() []string {
	env := make([]string, 0, len(os.Environ())+8)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			env = append(env, v)
		}
	}
	return append(env,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Waybill", "GIT_AUTHOR_EMAIL=test@waybill.dev",
		"GIT_COMMITTER_NAME=Waybill", "GIT_COMMITTER_EMAIL=test@waybill.dev")
}
