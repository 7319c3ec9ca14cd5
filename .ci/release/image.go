package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user that the programs run as, the same as in the base image of the Dockerfile.
const nonroot = "65532:65532"

// imageRequest is what `release image` is asked for.
type imageRequest struct {
	checkout
	platforms, base, output, push string
}

// image builds the image of every platform, and writes or pushes them with an index over all.
func image(ctx context.Context, r imageRequest) error {
	platforms, err := r.check()
	if err != nil {
		return err
	}
	at, err := r.time(ctx)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "waybill-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var inventories []v1.Image
	for _, p := range platforms {
		dir := filepath.Join(work, p.OS+"-"+p.Architecture)
		if err := r.build(ctx, p, dir, "./cmd/..."); err != nil {
			return err
		}
		base, err := baseImage(ctx, r.base, p)
		if err != nil {
			return err
		}
		built, err := programImage(base, p, dir, r.tag(), at)
		if err != nil {
			return err
		}
		inventory, err := inventoryImage(built, dir, r.tag())
		if err != nil {
			return err
		}
		inventories = append(inventories, inventory)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: &p}})
	}
	if r.push != "" {
		return pushImage(ctx, r.push, index, inventories)
	}
	return writeLayout(r.output, r.tag(), index, inventories)
}

// check returns the platforms, or what is wrong with the request, before minutes are spent on it.
func (r imageRequest) check() ([]v1.Platform, error) {
	if r.base != "" {
		if _, err := name.NewDigest(r.base); err != nil {
			return nil, fmt.Errorf("--base: %q names no digest (REPOSITORY@sha256:...): a tag may be another image tomorrow", r.base)
		}
	}
	if r.push == "" {
		if err := mayReplace(r.output); err != nil {
			return nil, err
		}
	} else if _, err := name.NewTag(r.push, name.StrictValidation); err != nil {
		return nil, fmt.Errorf("--push: %w", err)
	}
	return parsePlatforms(r.platforms)
}

// baseImage returns what the image is built on: nothing, or an image that a digest pins.
func baseImage(ctx context.Context, base string, p v1.Platform) (v1.Image, error) {
	if base == "" {
		return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
	}
	digest, err := name.NewDigest(base)
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(digest, remote.WithContext(ctx), remote.WithPlatform(p), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("--base: %w", err)
	}
	return image, nil
}

// programImage adds the programs of a folder to the base.
func programImage(base v1.Image, p v1.Platform, dir, version string, at time.Time) (v1.Image, error) {
	programs, err := folder(dir, "", 0o755)
	if err != nil {
		return nil, err
	}
	entries := programs
	if layers, err := base.Layers(); err != nil {
		return nil, err
	} else if len(layers) == 0 {
		entries = append(system(), programs...)
	}
	var content bytes.Buffer
	if err := writeTar(&content, entries, at); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{CreatedBy: "waybill release", Created: v1.Time{Time: at}},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created, file.OS, file.Architecture, file.Variant = v1.Time{Time: at}, p.OS, p.Architecture, p.Variant
	file.Config.Entrypoint, file.Config.Cmd = []string{"/waybill"}, nil
	file.Config.User, file.Config.WorkingDir = nonroot, "/"
	file.Config.Env = append(file.Config.Env, "HOME=/tmp")
	file.Config.Labels = map[string]string{
		"org.opencontainers.image.source":   "https://github.com/waybill-dev/waybill",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  version,
	}
	return mutate.ConfigFile(image, file)
}

// system returns what programs expect of a system, for an image without a base.
func system() []entry {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // which a file cannot express
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
		}
	}
	return []entry{
		{name: "etc", mode: fs.ModeDir | 0o755},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{name: "etc/ssl", mode: fs.ModeDir | 0o755},
		{name: "etc/ssl/certs", mode: fs.ModeDir | 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// inventoryImage returns the bill of materials of an image as an artifact that refers to it, as
// registries list it among the image's referrers.
func inventoryImage(of v1.Image, dir, version string) (v1.Image, error) {
	content, err := inventory(dir, version)
	if err != nil {
		return nil, err
	}
	subject, err := describe(of)
	if err != nil {
		return nil, err
	}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), inventoryType)
	artifact, err = mutate.AppendLayers(artifact, static.NewLayer(content, inventoryType))
	if err != nil {
		return nil, err
	}
	return mutate.Subject(artifact, *subject).(v1.Image), nil
}

// describe returns the descriptor of an image.
func describe(image v1.Image) (*v1.Descriptor, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	size, err := image.Size()
	if err != nil {
		return nil, err
	}
	kind, err := image.MediaType()
	if err != nil {
		return nil, err
	}
	return &v1.Descriptor{MediaType: kind, Size: size, Digest: digest}, nil
}

// pushImage pushes the index below its tag, and the inventories beside it.
func pushImage(ctx context.Context, to string, index v1.ImageIndex, inventories []v1.Image) error {
	tag, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, index, options...); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	for _, i := range inventories {
		digest, err := i.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(tag.Context().Digest(digest.String()), i, options...); err != nil {
			return fmt.Errorf("push the bill of materials to %s: %w", tag.Context(), err)
		}
	}
	return report(tag.String(), index)
}

// writeLayout writes the index below its tag, and the inventories, as an OCI layout.
func writeLayout(dir, tag string, index v1.ImageIndex, inventories []v1.Image) error {
	if err := fresh(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return err
	}
	for _, i := range inventories {
		if err := path.AppendImage(i); err != nil {
			return err
		}
	}
	return report(dir+":"+tag, index)
}

// mayReplace returns an error if a folder holds anything but a layout of an earlier run.
func mayReplace(dir string) error {
	content, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		return fmt.Errorf("--output: %s is not empty and is no OCI layout; name another folder", dir)
	}
	return nil
}

// report prints where the image is, with its digest.
func report(where string, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", strings.TrimSuffix(where, "@"), digest)
	return nil
}
