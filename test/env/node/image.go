//go:build linux

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	imagev1 "github.com/opencontainers/image-spec/specs-go/v1"

	"waybill.dev/waybill/test/env"
)

// Image is an image that is made on this machine.
type Image struct {
	// Name by which Pods use it, with a tag other than latest.
	Name string
	// Packages of Debian that it consists of: all of them, since what they depend on is not added.
	Packages []string
	// Files are added to it, by their absolute paths.
	Files map[string]string
	// Folders are added to it, writable for every user.
	Folders []string
}

// Build writes the image to dir and returns the file. A file that is there is assumed to be what an earlier
// call has written. Packages are downloaded and unpacked, not installed.
func (i Image) Build(ctx context.Context, dir string) (string, error) {
	description, err := json.Marshal(i)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, fmt.Sprintf("%x.tar", sha256.Sum256(description)))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	work, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", i.Name, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	root := filepath.Join(work, "root")
	if err := i.unpack(ctx, work, root); err != nil {
		return "", fmt.Errorf("build image %s: %w", i.Name, err)
	}
	if err := pack(i.Name, root, filepath.Join(work, "image.tar")); err != nil {
		return "", fmt.Errorf("build image %s: %w", i.Name, err)
	}
	return file, os.Rename(filepath.Join(work, "image.tar"), file)
}

func (i Image) unpack(ctx context.Context, work, root string) error {
	packages := filepath.Join(work, "packages")
	if err := errors.Join(os.MkdirAll(packages, 0o755), os.MkdirAll(root, 0o755)); err != nil {
		return err
	}
	if len(i.Packages) > 0 {
		download := exec.CommandContext(ctx, "apt-get", append([]string{"download", "-q"}, i.Packages...)...)
		download.Dir = packages
		if out, err := download.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get download: %w: %s", err, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(packages, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", file, root).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w: %s", filepath.Base(file), err, out)
		}
	}
	for _, unused := range []string{"usr/share/doc", "usr/share/man", "usr/share/locale"} {
		if err := os.RemoveAll(filepath.Join(root, unused)); err != nil {
			return err
		}
	}
	for path, content := range i.Files {
		file := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o755)); err != nil { //nolint:gosec // it may be a program
			return err
		}
	}
	for _, path := range i.Folders {
		folder := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.Chmod(folder, 0o777|fs.ModeSticky)); err != nil {
			return err
		}
	}
	return nil
}

// pauseImage builds the image of the first process of every Pod.
func pauseImage(ctx context.Context, dir string) (string, error) {
	root, err := env.Root()
	if err != nil {
		return "", err
	}
	rootfs := filepath.Join(dir, "pause")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(rootfs, "pause"), "./test/env/node/pause")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pause: %w: %s", err, out)
	}
	file := filepath.Join(dir, "pause.tar")
	return file, pack(pauseName, rootfs, file, "/pause")
}

// layout is an OCI image layout that is being written.
type layout struct{ *tar.Writer }

func (l layout) file(name string, content []byte) error {
	if err := l.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := l.Write(content)
	return err
}

// blob adds an object, and returns what refers to it.
func (l layout) blob(mediaType string, content any) (imagev1.Descriptor, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return imagev1.Descriptor{}, err
	}
	d := imagev1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(encoded), Size: int64(len(encoded))}
	return d, l.file("blobs/sha256/"+d.Digest.Encoded(), encoded)
}

// pack writes a file system as an image of one layer.
func pack(name, root, file string, command ...string) error {
	layer := file + ".layer"
	defer func() { _ = os.Remove(layer) }()
	if err := packLayer(root, layer); err != nil {
		return err
	}
	content, err := os.ReadFile(layer)
	if err != nil {
		return err
	}
	var image bytes.Buffer
	to := layout{tar.NewWriter(&image)}
	descriptor := imagev1.Descriptor{MediaType: imagev1.MediaTypeImageLayer, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := to.file("blobs/sha256/"+descriptor.Digest.Encoded(), content); err != nil {
		return err
	}
	config, err := to.blob(imagev1.MediaTypeImageConfig, imagev1.Image{
		Platform: imagev1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config:   imagev1.ImageConfig{Cmd: command, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}},
		RootFS:   imagev1.RootFS{Type: "layers", DiffIDs: []digest.Digest{descriptor.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := to.blob(imagev1.MediaTypeImageManifest, imagev1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagev1.MediaTypeImageManifest,
		Config: config, Layers: []imagev1.Descriptor{descriptor},
	})
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(imagev1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagev1.MediaTypeImageIndex, Manifests: []imagev1.Descriptor{manifest}})
	if err != nil {
		return err
	}
	if err := errors.Join(
		to.file(imagev1.ImageLayoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`)), to.file(imagev1.ImageIndexFile, index), to.Close(),
	); err != nil {
		return err
	}
	return os.WriteFile(file, image.Bytes(), 0o600)
}

// packLayer writes the files below root, which belong to root in the image, too.
func packLayer(root, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	to := tar.NewWriter(out)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return add(to, root, path, entry)
	})
	return errors.Join(err, to.Close(), out.Close())
}

func add(to *tar.Writer, root, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if entry.Type() == fs.ModeSymlink {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(root, path); err != nil {
		return err
	}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := to.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	_, err = io.Copy(to, from)
	return err
}
