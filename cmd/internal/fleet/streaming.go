package fleet

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Streaming is like REST, for watches and logs, which last as long as there is something to report:
// neither the configuration nor the HTTP client has a time limit.
func (c *Cluster) Streaming() (*rest.Config, *http.Client, error) {
	config, httpClient, err := c.REST()
	if err != nil {
		return nil, nil, err
	}
	unlimited := *httpClient
	unlimited.Timeout, config.Timeout = 0, 0
	return config, &unlimited, nil
}

// StreamingMetadata returns a client for watches of metadata, which have no time limit.
func (c *Cluster) StreamingMetadata() (metadata.Interface, error) {
	config, httpClient, err := c.Streaming()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // what is watched is there already: the user does not choose its version
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return m, nil
}
