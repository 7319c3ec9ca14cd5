package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run carries out one subcommand.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 || (args[0] != "image" && args[0] != "archives") {
		return errors.New("usage: release image|archives [flags]; --help lists the flags")
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	source, version := flags.String("source", ".", "root of the checkout"), flags.String("version", "unknown", "version of the release")
	var do func() error
	switch args[0] {
	case "image":
		platforms := flags.String("platforms", "linux/amd64,linux/arm64", "comma-separated list of platforms")
		base := flags.String("base", "", "image to build on, by digest (REPOSITORY@sha256:...); empty: none")
		output := flags.String("output", "dist/image", "folder of the OCI layout, which is replaced")
		push := flags.String("push", "", "push to REPOSITORY:TAG, with the credentials of 'docker login', instead of writing a layout")
		do = func() error {
			return image(ctx, imageRequest{
				checkout: checkout{root: *source, version: *version}, platforms: *platforms, base: *base, output: *output, push: *push,
			})
		}
	case "archives":
		output := flags.String("output", "dist/release", "folder of the archives, which is replaced")
		platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "comma-separated list of platforms")
		do = func() error {
			return archives(ctx, checkout{root: *source, version: *version}, *platforms, *output)
		}
	}
	if err := flags.Parse(args[1:]); err != nil {
		return flag.ErrHelp // which flag says already
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return do()
}

// checkout is what is released.
type checkout struct {
	root    string
	version string
}

// tag is the version as images, charts and archives carry it.
func (c checkout) tag() string { return strings.TrimPrefix(c.version, "v") }

// time returns SOURCE_DATE_EPOCH where it is set, and else the time of the commit.
func (c checkout) time(ctx context.Context) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		cmd.Dir, cmd.Stderr = c.root, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("read the time of the commit (set SOURCE_DATE_EPOCH where there is no git): %w", err)
		}
		seconds = strings.TrimSpace(string(out))
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", seconds)
	}
	return time.Unix(epoch, 0).UTC(), nil
}

// build compiles the commands (patterns of packages) for a platform into a folder, statically linked.
func (c checkout) build(ctx context.Context, p v1.Platform, dir string, commands ...string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "build %s for %s\n", strings.Join(commands, " "), p.String())
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"build", "-trimpath", "-ldflags=-s -w -X main.version=" + c.tag(), "-o", dir + string(filepath.Separator),
	}, commands...)...)
	cmd.Dir, cmd.Stderr = c.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", p.String(), err)
	}
	return nil
}

// parsePlatforms reads a comma-separated list such as linux/amd64,linux/arm64.
func parsePlatforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for name := range strings.SplitSeq(list, ",") {
		p, err := v1.ParsePlatform(name)
		if err != nil || p.OS == "" || p.Architecture == "" {
			return nil, fmt.Errorf("--platforms: %q is not OS/ARCHITECTURE", name)
		}
		platforms = append(platforms, *p)
	}
	return platforms, nil
}

// fresh empties a folder that only this program writes.
func fresh(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}
