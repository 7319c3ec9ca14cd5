package webhooks

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"waybill.dev/waybill/api/expansion"
)

// What a user cluster may send: it is not trusted with the memory of this process, which answers for
// others.
const (
	maxDiscovery       = 4 << 20 // bytes of the description of a group, or of all of them
	maxDiscoveryValues = 100_000
	maxRefusal         = 256 << 10 // bytes of an error
)

// answers bounds the answers of a user cluster.
type answers struct {
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. What a dry run would have made is not read: that there was
// no error is all that matters.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, most := response.Body, int64(maxDiscovery)
	switch {
	case response.StatusCode >= http.StatusMultipleChoices:
		most = maxRefusal
	case r.Method == http.MethodPatch:
		_ = body.Close()
		response.Header.Set("Content-Type", "application/json")
		response.Body = io.NopCloser(strings.NewReader(`{"apiVersion":"v1","kind":"Status","status":"Success"}`))
		response.ContentLength = -1
		return response, nil
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{expansion.JSONReader(expansion.BytesReader(body, most, fmt.Errorf("the cluster sends more than %d bytes", most)), maxDiscoveryValues), body}
	return response, nil
}
