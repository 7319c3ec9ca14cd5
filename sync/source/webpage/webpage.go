package webpage

import (
	"errors"
	"mime"
	"net/http"
)

// Err is the error of a request whose response is a web page.
var Err = errors.New("the server answered with a web page")

// Refuse returns a transport that fails with Err where a request succeeds with a web page. Responses
// with another status are left alone: their text may explain an error.
func Refuse(next http.RoundTripper) http.RoundTripper { return refusing{next} }

type refusing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "text/html", "application/xhtml+xml":
		_ = res.Body.Close()
		return nil, Err
	}
	return res, nil
}
