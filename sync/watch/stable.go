package watch

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"regexp"
)

// Stable returns an error whose text is the same from try to try, so that it may stand in a
// status: without the URL of a request, the port that it came from, and what else numbers
// tries and requests. It wraps err. Nil stays nil.
func Stable(err error) error {
	if err == nil {
		return nil
	}
	return stableError{err}
}

// stableError is an error without what differs from one request to the next.
type stableError struct{ cause error }

func (e stableError) Unwrap() error { return e.cause }

func (e stableError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return "API server: no answer in time"
	}
	if operation, ok := errors.AsType[*net.OpError](e.cause); ok && operation.Err != nil {
		where := "API server"
		if operation.Addr != nil {
			where += " " + operation.Addr.String()
		}
		return where + ": " + unnumbered(operation.Err.Error())
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.cause); ok && invalid.Reason == x509.Expired {
		return "API server: its certificate is not valid, or not any more"
	}
	if request, ok := errors.AsType[*url.Error](e.cause); ok {
		return "API server: " + unnumbered(request.Err.Error())
	}
	return unnumbered(e.cause.Error())
}

// numbering is what numbers tries and requests in the words of servers, proxies and webhooks, and
// what is written in place of it.
var numbering = []struct {
	words   *regexp.Regexp
	instead string
}{
	// The port that a connection came from: `read tcp 10.0.0.1:43210->10.0.0.2:443`.
	{regexp.MustCompile(`(tcp[46]? )\S+:\d+->(\S+:\d+)`), "$1$2"},
	// HTTP/2: `stream ID 15`, `LastStreamID=15`.
	{regexp.MustCompile(`(?i)\b(last)?stream ?id[ =:]+\d+[,;]? ?`), ""},
	{regexp.MustCompile(`(?i)[,;]? ?\(?\b(request|correlation|trace|audit)[-_ ]?id"?[ =:]+"?[0-9a-z][-0-9a-z]*"?\)?`), ""},
	{regexp.MustCompile(`(?i)[,;]? ?\(?\b(after |on )?(attempts?|retry|retries|try)[ #:=]+\d+( ?(of|/) ?\d+)?\)?`), ""},
	{regexp.MustCompile(`(?i)[,;]? ?\(?\bafter \d+ (attempts?|retries|tries)\)?`), ""},
	// `current time 2026-11-21T10:00:00Z is after ...`, of a certificate behind a webhook.
	{regexp.MustCompile(`\bcurrent time \S+ is\b`), "it is"},
}

// unnumbered leaves out what numbers tries and requests.
func unnumbered(text string) string {
	for _, n := range numbering {
		text = n.words.ReplaceAllString(text, n.instead)
	}
	return text
}
