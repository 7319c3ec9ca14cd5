package chart

import (
	"fmt"
	"net/url"
	"strings"

	"helm.sh/helm/v3/pkg/registry"
)

// Reference names one version of one chart.
type Reference struct {
	// URL is a chart repository, http(s)://host/path, or the part of an OCI reference above the
	// chart, oci://host/path.
	URL string
	// Name is the chart's name in the repository; in a registry it is the last part of the path.
	Name string
	// Version is exact, as the repository lists it; `v1.2.3` and `1.2.3` are the same version.
	Version string
}

// String returns the reference in a form for messages.
func (r Reference) String() string {
	return fmt.Sprintf("chart %s %s from %s", r.Name, r.Version, redact(r.URL))
}

// validate rejects references that no source could resolve, and those that would show a secret in
// messages.
func (r Reference) validate() error {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return fmt.Errorf("%w: URL cannot be parsed", ErrInvalidReference)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != registry.OCIScheme:
		return fmt.Errorf("%w: URL %s must begin with http://, https:// or oci://", ErrInvalidReference, redact(r.URL))
	case u.Host == "":
		return fmt.Errorf("%w: URL %s names no host", ErrInvalidReference, redact(r.URL))
	case u.User != nil:
		return fmt.Errorf("%w: URL %s holds credentials; they belong in a Secret", ErrInvalidReference, redact(r.URL))
	case r.Name == "":
		return fmt.Errorf("%w: chart name is empty", ErrInvalidReference)
	case r.Version == "":
		return fmt.Errorf("%w: version of chart %s is empty", ErrInvalidReference, r.Name)
	}
	return nil
}

// normalised returns the same form for all spellings of one repository.
func (r Reference) normalised() Reference {
	r.URL = strings.TrimRight(r.URL, "/")
	return r
}

func (r Reference) isOCI() bool { return registry.IsOCI(r.URL) }

// redact returns the parts of a URL that may be shown: neither user information nor a query, either
// of which may be a secret.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unparsable URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
