package chart

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/registry"
)

// indexSource is where an index was found, with what is needed to ask whether it is unchanged.
type indexSource struct {
	digest             [sha256.Size]byte
	etag, lastModified string
}

// fetchFromRepository downloads the archive of an exact version into the store and returns its
// digest.
func (c *Cache) fetchFromRepository(ctx context.Context, ref Reference, cred Credentials) (string, error) {
	idx, fresh, err := c.index(ctx, ref.URL, cred, false)
	if err != nil {
		return "", err
	}
	rel, err := idx.find(ref.Name, ref.Version)
	if err == nil {
		digest, fetchErr := c.fetchRelease(ctx, ref, rel, cred)
		if fetchErr == nil || fresh {
			return digest, fetchErr
		}
	} else if fresh {
		return "", err
	}
	// The index that we remember does not have it, or its address does not work: the repository may
	// have changed.
	if idx, _, err = c.index(ctx, ref.URL, cred, true); err != nil {
		return "", err
	}
	if rel, err = idx.find(ref.Name, ref.Version); err != nil {
		return "", err
	}
	return c.fetchRelease(ctx, ref, rel, cred)
}

// fetchRelease downloads the archive that an index entry points to, possibly from another host or
// from a registry.
func (c *Cache) fetchRelease(ctx context.Context, ref Reference, rel release, cred Credentials) (string, error) {
	base, err := url.Parse(ref.URL + "/")
	if err != nil {
		return "", fmt.Errorf("%w: URL cannot be parsed", ErrInvalidReference)
	}
	target, err := base.Parse(rel.url)
	if err != nil {
		return "", fmt.Errorf("%w: index of %s has an unusable address for %s", ErrInvalidChart, redact(ref.URL), ref.Name)
	}
	switch target.Scheme {
	case "http", "https":
		// As with a redirect, only that here the index may say what must come.
		if base.Scheme == "https" && target.Scheme == "http" && rel.digest == "" {
			return "", fmt.Errorf("%w: index of %s gives %s an http:// address and no digest, so the chart could be replaced in transit",
				ErrInvalidChart, redact(ref.URL), ref.Name)
		}
	case registry.OCIScheme:
		// User name and password are for the repository, not for the registry that it points to.
		elsewhere := cred
		if !strings.EqualFold(target.Host, base.Host) {
			elsewhere.Username, elsewhere.Password = "", ""
		}
		return c.fetchFromRegistry(ctx, rel.url, rel.version, elsewhere)
	default:
		return "", fmt.Errorf("%w: index of %s gives %s an address with the scheme %q", ErrInvalidChart, redact(ref.URL), ref.Name, target.Scheme)
	}
	s, err := c.newSession(ref.URL, cred)
	if err != nil {
		return "", err
	}
	defer s.close()
	resp, err := s.get(ctx, target, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	return c.store.put(c.archiveReader(resp.Body, redact(target.String())), rel.digest)
}

// archiveReader bounds the size of an archive during the download.
func (c *Cache) archiveReader(r io.Reader, from string) io.Reader {
	limit := c.limits.ArchiveBytes
	return &fetchReader{what: from, r: &limitedReader{r: r, left: limit, err: errTooLarge("archive "+from, "ArchiveBytes", limit)}}
}

// index returns the index of a repository, and whether it was requested just now. Without refresh a
// remembered index will do: it may lack new entries, but those that it has are exact.
func (c *Cache) index(ctx context.Context, repository string, cred Credentials, refresh bool) (*index, bool, error) {
	key := c.store.key("index", repository, cred)
	if !refresh {
		if idx, ok := c.rememberedIndex(key); ok {
			return idx, false, nil
		}
	}
	idx, err := once(ctx, &c.indexFlight, key, func(ctx context.Context) (*index, error) {
		return c.fetchIndex(ctx, key, repository, cred)
	})
	return idx, true, err
}

func (c *Cache) rememberedIndex(key string) (*index, bool) {
	source, ok := c.indexSources.Lookup(key)
	if !ok {
		return nil, false
	}
	return c.indexes.Lookup(source.digest)
}

// fetchIndex requests an index, conditional on the one we have, and parses the answer unless its
// content is known already.
func (c *Cache) fetchIndex(ctx context.Context, key, repository string, cred Credentials) (*index, error) {
	target, err := url.Parse(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: URL cannot be parsed", ErrInvalidReference)
	}
	target = target.JoinPath("index.yaml")
	s, err := c.newSession(repository, cred)
	if err != nil {
		return nil, err
	}
	defer s.close()
	header := http.Header{}
	known, remembered := c.rememberedIndex(key)
	if source, _ := c.indexSources.Lookup(key); remembered {
		setIfAny(header, "If-None-Match", source.etag)
		setIfAny(header, "If-Modified-Since", source.lastModified)
	}
	resp, err := s.get(ctx, target, header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified {
		return known, nil
	}
	what := redact(target.String())
	limit := c.limits.IndexBytes
	spooled, digest, err := c.store.spool(&fetchReader{what: what, r: &limitedReader{
		r: resp.Body, left: limit, err: errTooLarge("repository index "+what, "IndexBytes", limit),
	}})
	if err != nil {
		return nil, err
	}
	defer discard(spooled)
	idx, err := c.parsedIndex(ctx, spooled, digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	c.indexSources.Put(key, indexSource{digest, resp.Header.Get("ETag"), lastModified(resp.Header)}, 1)
	return idx, nil
}

// settled is how old an index must be before its time says whether it has changed since: times have whole
// seconds, and the clocks of a server and of the machine that writes its files may differ.
const settled = time.Minute

// lastModified returns the time of an index; empty if another index may have the same.
func lastModified(h http.Header) string {
	text := h.Get("Last-Modified")
	at, err := http.ParseTime(text)
	answered, failed := http.ParseTime(h.Get("Date"))
	if err != nil || failed != nil || answered.Sub(at) < settled {
		return ""
	}
	return text
}

// parsedIndex parses an index once per content.
func (c *Cache) parsedIndex(ctx context.Context, doc io.ReadSeeker, digest [sha256.Size]byte) (*index, error) {
	select {
	case c.parsing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other repository indexes: %w", ctx.Err())
	}
	defer func() { <-c.parsing }()
	if idx, ok := c.indexes.Lookup(digest); ok {
		return idx, nil
	}
	idx, err := parseIndex(doc, c.limits)
	if err != nil {
		return nil, err
	}
	c.indexes.Put(digest, idx, idx.cost)
	return idx, nil
}

func setIfAny(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// fetchReader turns an error in the middle of a body into ErrUnreachable.
type fetchReader struct {
	what string
	r    io.Reader
}

func (f *fetchReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !isOurs(err) {
		err = transportError(f.what, err)
	}
	return n, err
}
