package watch

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"regexp"
)

// Stable wraps err in an error whose text is the same for every attempt, so that it can be part of
// a status: without the URL of a request, the port that it came from, and other ids of single
// attempts and requests. It returns nil for nil.
func Stable(err error) error {
	if err == nil {
		return nil
	}
	return stableError{err}
}

// stableError is an error without the parts that differ from one request to the next.
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
		return "API server: its certificate has expired or is not yet valid"
	}
	if request, ok := errors.AsType[*url.Error](e.cause); ok {
		return "API server: " + unnumbered(request.Err.Error())
	}
	return unnumbered(e.cause.Error())
}

// numbering lists patterns of ids of attempts and requests in messages of servers, proxies and
// webhooks, and their replacements.
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

// unnumbered removes the ids of attempts and requests from text.
func unnumbered(text string) string {
	for _, n := range numbering {
		text = n.words.ReplaceAllString(text, n.instead)
	}
	return text
}
