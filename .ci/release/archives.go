package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/semver"
)

// checksums is the file that lists the digests of the others, as sha256sum checks them.
const checksums = "SHA256SUMS"

// archives writes an archive with the programs for each platform, the chart, a bill of materials
// and checksums into a folder.
func archives(ctx context.Context, c checkout, list, output string) error {
	if !semver.IsValid("v" + c.tag()) {
		return fmt.Errorf("--version: %q is not a semantic version such as 1.2.3, which a chart needs", c.version)
	}
	platforms, err := parsePlatforms(list)
	if err != nil {
		return err
	}
	at, err := c.time(ctx)
	if err != nil {
		return err
	}
	if err := mayReplaceRelease(output); err != nil {
		return err
	}
	if err := fresh(output); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "waybill-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	for _, p := range platforms {
		if err := c.archive(ctx, p, filepath.Join(work, p.OS+"-"+p.Architecture), output, at); err != nil {
			return err
		}
	}
	if err := c.chart(output, at); err != nil {
		return err
	}
	return writeChecksums(output)
}

// archive packs the programs of one platform, with a bill of materials. The controllers and the
// webhook run on Linux; the command line runs anywhere.
func (c checkout) archive(ctx context.Context, p v1.Platform, dir, output string, at time.Time) error {
	commands := "./cmd/waybill"
	if p.OS == "linux" {
		commands = "./cmd/..."
	}
	if err := c.build(ctx, p, dir, commands); err != nil {
		return err
	}
	name := fmt.Sprintf("waybill_%s_%s_%s", c.tag(), p.OS, p.Architecture)
	materials, err := inventory(dir, c.tag())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(output, name+".cdx.json"), materials, 0o644); err != nil {
		return err
	}
	entries, err := folder(dir, name, 0o755)
	if err != nil {
		return err
	}
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(c.root, file))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name + "/" + file, 0o644, content})
	}
	return writeTarGz(filepath.Join(output, name+".tar.gz"), entries, at)
}

// chartVersions are the lines of a Chart.yaml that say which release it is.
var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart packs the chart, which installs the image of the same version.
func (c checkout) chart(output string, at time.Time) error {
	entries, err := folder(filepath.Join(c.root, "charts", "waybill"), "waybill", 0o644)
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].name == "waybill/Chart.yaml" {
			entries[i].content = chartVersions.ReplaceAll(entries[i].content, []byte("$1: "+c.tag()))
		}
	}
	return writeTarGz(filepath.Join(output, "waybill-"+c.tag()+".tgz"), entries, at)
}

// mayReplaceRelease returns an error if a folder holds anything but an earlier release.
func mayReplaceRelease(dir string) error {
	content, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range content {
		if file.Name() != checksums && !strings.HasPrefix(file.Name(), "waybill") {
			return fmt.Errorf("--output: %s holds %s, which no release brought; name another folder", dir, file.Name())
		}
	}
	return nil
}

// writeChecksums lists the digests of all files of a folder.
func writeChecksums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	fmt.Print(lines.String())
	return os.WriteFile(filepath.Join(dir, checksums), []byte(lines.String()), 0o644)
}
