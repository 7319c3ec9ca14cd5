package fleet

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Streaming is like REST, for watches and logs, which last as long as there is something to tell:
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
