package env

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // the registry's storage
	"github.com/sirupsen/logrus"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
)

// Registry is an OCI registry that keeps its content in memory.
type Registry struct {
	httpServer
	app *handlers.App
}

// StartRegistry starts an empty registry.
func StartRegistry(access Access) (*Registry, error) {
	silence()
	config := &configuration.Configuration{
		Storage: configuration.Storage{
			"inmemory":    configuration.Parameters{},
			"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
		},
	}
	config.HTTP.Secret = "uploads of one process" // signs upload URLs; no other process gets one
	config.HTTP.RelativeURLs = true               // the front has another port
	r := &Registry{app: handlers.NewApp(context.Background(), config)}
	if err := r.serve(access, r.app); err != nil {
		return nil, errors.Join(fmt.Errorf("start OCI registry: %w", err), r.app.Shutdown())
	}
	return r, nil
}

// silence discards the registry's log, which has no setting of its own, so that it does not appear
// in the output of tests and the demo.
var silence = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// Stop ends the registry. Stopping twice is allowed.
func (r *Registry) Stop() {
	r.httpServer.Stop()
	_ = r.app.Shutdown() // closes event sinks; there are none
}

// URL returns where charts are pushed, as oci://host:port/charts, for a chart source's url.
func (r *Registry) URL() string { return "oci://" + r.Address() + "/charts" }

// Push packages the chart in dir as HelmRepo.Push does and pushes it. It returns
// the digest of the manifest.
func (r *Registry) Push(dir string, changes ...func(*chart.Chart)) (string, error) {
	c, err := loadChart(dir, changes)
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp("", "waybill-chart-")
	if err != nil {
		return "", fmt.Errorf("package chart %s: %w", dir, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	archive, err := chartutil.Save(c, scratch)
	if err != nil {
		return "", fmt.Errorf("package chart %s: %w", dir, err)
	}
	content, err := os.ReadFile(filepath.Clean(archive))
	if err != nil {
		return "", fmt.Errorf("read packaged chart: %w", err)
	}
	client, err := r.client()
	if err != nil {
		return "", err
	}
	ref := fmt.Sprintf("%s/charts/%s:%s", r.Address(), c.Name(), c.Metadata.Version)
	result, err := client.Push(content, ref)
	if err != nil {
		return "", fmt.Errorf("push chart %s: %w", ref, err)
	}
	return result.Manifest.Digest, nil
}

// client returns a client that pushes through the front, with the right credentials.
func (r *Registry) client() (*registry.Client, error) {
	options := []registry.ClientOption{registry.ClientOptWriter(&bytes.Buffer{})}
	if r.access.Username != "" {
		options = append(options, registry.ClientOptBasicAuth(r.access.Username, r.access.Password))
	}
	if !r.access.TLS {
		options = append(options, registry.ClientOptPlainHTTP())
	} else {
		ca, err := CA()
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		options = append(options, registry.ClientOptHTTPClient(&http.Client{
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		}))
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("build registry client: %w", err)
	}
	return client, nil
}
