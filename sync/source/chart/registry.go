package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"waybill.dev/waybill/api/expansion"
)

// fetchFromRegistry downloads the chart layer of address at version into the store and returns its
// digest. address is oci://host/path, including the chart's name.
func (c *Cache) fetchFromRegistry(ctx context.Context, address, version string, cred Credentials) (string, error) {
	repo, s, err := c.openRegistry(ctx, address, cred)
	if err != nil {
		return "", err
	}
	defer s.close()
	manifest, err := c.fetchManifest(ctx, repo, address, version)
	if err != nil {
		return "", err
	}
	layer, err := chartLayer(address, manifest)
	if err != nil {
		return "", err
	}
	if layer.Size > c.limits.ArchiveBytes {
		return "", errTooLarge("archive "+address, "ArchiveBytes", c.limits.ArchiveBytes)
	}
	// What it has sent us before need not be fetched twice. What only others have sent must be: a
	// manifest may name the digest of an archive that the registry does not hold, and that the caller
	// may not see.
	sent := c.store.key("layer", address+"\n"+layer.Digest.String(), cred)
	if digest, ok := c.store.lookup(sent); ok {
		return digest, nil
	}
	blob, err := repo.Blobs().Fetch(ctx, *layer)
	if err != nil {
		return "", registryError(address, err)
	}
	defer func() { _ = blob.Close() }()
	digest, err := c.store.put(c.archiveReader(blob, address), layer.Digest.Encoded())
	if err != nil {
		return "", err
	}
	return digest, c.store.link(sent, digest)
}

// openRegistry prepares a client for one repository of a registry. The caller must close the
// session.
func (c *Cache) openRegistry(ctx context.Context, address string, cred Credentials) (*remote.Repository, *session, error) {
	path := strings.TrimPrefix(address, registry.OCIScheme+"://")
	// Tag and digest are derived from the version only.
	if i := strings.LastIndexAny(path, ":@"); i > strings.Index(path, "/") {
		path = path[:i]
	}
	repo, err := remote.NewRepository(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s is not a repository of a registry", ErrInvalidReference, redact(address))
	}
	scheme := "https://"
	if cred.PlainHTTP {
		scheme = "http://"
	}
	credential, err := cred.forRegistry(ctx, repo.Reference.Host())
	if err != nil {
		return nil, nil, err
	}
	s, err := c.newSession(scheme+repo.Reference.Host(), cred)
	if err != nil {
		return nil, nil, err
	}
	client := &auth.Client{Client: s.client, Credential: credential, Cache: auth.NewCache()}
	client.SetUserAgent(userAgent)
	repo.Client, repo.PlainHTTP = client, cred.PlainHTTP
	return repo, s, nil
}

// fetchManifest fetches the manifest that is tagged with version. If there is none, it looks for
// another spelling of the version.
func (c *Cache) fetchManifest(ctx context.Context, repo *remote.Repository, address, version string) (*ocispec.Manifest, error) {
	desc, body, err := repo.FetchReference(ctx, tagOf(version))
	if errors.Is(err, errdef.ErrNotFound) {
		versions, listErr := c.listVersions(ctx, repo, address)
		if listErr != nil {
			return nil, listErr
		}
		found, matchErr := matchVersion(redact(address), version, versions)
		if matchErr != nil {
			return nil, matchErr
		}
		desc, body, err = repo.FetchReference(ctx, tagOf(found))
	}
	if err != nil {
		return nil, registryError(address, err)
	}
	defer func() { _ = body.Close() }()
	if desc.Size > maxManifestBytes {
		return nil, fmt.Errorf("%w: manifest of %s is larger than %d bytes", ErrInvalidChart, address, maxManifestBytes)
	}
	data, err := content.ReadAll(body, desc)
	if err != nil {
		return nil, registryError(address, err)
	}
	if err := expansion.JSON(data, maxManifestValues); err != nil {
		return nil, fmt.Errorf("%w: manifest of %s cannot be used: %w", ErrInvalidChart, address, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("%w: manifest of %s cannot be parsed: %w", ErrInvalidChart, address, err)
	}
	return &manifest, nil
}

// maxManifestBytes is the maximum that registries themselves accept.
const maxManifestBytes = 4 << 20

// maxManifestValues is how many values the manifest of a chart may contain. It has a few dozen, and each
// layer takes fifty times the memory of the three bytes that it may be written in.
const maxManifestValues = 10_000

// listVersions lists the tags of a repository as versions.
func (c *Cache) listVersions(ctx context.Context, repo *remote.Repository, address string) ([]string, error) {
	var versions []string
	err := repo.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
		if int64(len(versions)) > c.limits.Tags {
			return errTooLarge("number of tags of "+address, "Tags", c.limits.Tags)
		}
		return nil
	})
	if err != nil {
		return nil, registryError(address, err)
	}
	return versions, nil
}

// tagOf returns the tag that Helm uses for a version: a tag cannot hold a plus sign.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

func chartLayer(address string, manifest *ocispec.Manifest) (*ocispec.Descriptor, error) {
	if manifest.Config.MediaType != registry.ConfigMediaType {
		return nil, fmt.Errorf("%w: %s is not a Helm chart: its media type is %q", ErrInvalidChart, address, manifest.Config.MediaType)
	}
	for i, layer := range manifest.Layers {
		if layer.MediaType != registry.ChartLayerMediaType && layer.MediaType != registry.LegacyChartLayerMediaType {
			continue
		}
		// It is not checked elsewhere: to the client of the registry it is any text.
		if !digestForm.MatchString(layer.Digest.String()) {
			return nil, fmt.Errorf("%w: digest of the archive of %s is not a SHA-256 digest in lower case", ErrInvalidChart, address)
		}
		return &manifest.Layers[i], nil
	}
	return nil, fmt.Errorf("%w: %s contains no chart archive", ErrInvalidChart, address)
}

// registryError classifies an error of a registry client.
func registryError(address string, err error) error {
	var response *errcode.ErrorResponse
	switch {
	case isOurs(err):
		return err
	case errors.As(err, &response):
		return statusError(address, response.StatusCode)
	case errors.Is(err, errdef.ErrNotFound):
		return statusError(address, http.StatusNotFound)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("fetch %s: %w: the registry requires credentials", address, ErrAuth)
	default:
		return transportError(address, withoutURL(err))
	}
}
