package registration

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// Endpoint is where API servers find the webhooks: a Service, or a URL if the process runs outside
// a cluster.
type Endpoint struct {
	url       *url.URL
	service   string
	namespace string
}

// ServiceEndpoint returns the endpoint at port 443 of a Service.
func ServiceEndpoint(namespace, name string) Endpoint {
	return Endpoint{namespace: namespace, service: name}
}

// ParseURL parses an endpoint of the form `https://host:port`, with an optional path that is
// prepended to those of the webhooks. API servers accept nothing else: no user, no query.
func ParseURL(address string) (Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Endpoint{}, errors.New("parse URL of the webhooks: not a URL")
	}
	if u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Endpoint{}, fmt.Errorf("parse URL of the webhooks: %s is not of the form https://host:port", u.Redacted())
	}
	return Endpoint{url: u}, nil
}

// ByURL reports whether API servers reach the webhooks by URL.
func (e Endpoint) ByURL() bool { return e.url != nil }

// Hosts returns the names that the serving certificate must carry, first the one that clients use.
func (e Endpoint) Hosts() []string {
	if e.ByURL() {
		return []string{e.url.Hostname()}
	}
	name := e.service + "." + e.namespace
	return []string{name + ".svc", name, name + ".svc.cluster.local"}
}

// String returns the endpoint as it appears in messages.
func (e Endpoint) String() string {
	if e.ByURL() {
		return e.url.String()
	}
	return "service " + e.namespace + "/" + e.service
}

func (e Endpoint) clientConfig(path string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	if e.ByURL() {
		address := strings.TrimSuffix(e.url.String(), "/") + path
		return admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: bundle}
	}
	return admissionregistrationv1.WebhookClientConfig{
		CABundle: bundle,
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: e.namespace, Name: e.service, Path: &path, Port: ptr.To[int32](443),
		},
	}
}
