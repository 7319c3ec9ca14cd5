package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrNotEngaged means that a cluster is not known, was not contacted yet, is withheld, or is kept
	// out; the error that wraps it says which.
	ErrNotEngaged = errors.New("not connected")

	// ErrRefused is matched by errors of the function of Registry.Guard that keep a cluster from being
	// engaged.
	ErrRefused = errors.New("refused")

	// ErrUnreachable means that the API server of a cluster does not answer. There is no need to
	// retry: Registry.Subscribe notifies when the cluster is back.
	ErrUnreachable = errors.New("unreachable")
)

// UnreachableError is the ErrUnreachable of one cluster.
type UnreachableError struct {
	// Cluster that does not answer.
	Cluster types.NamespacedName
	// Reason says why it does not answer, in words that stay the same from attempt to attempt.
	Reason string
	// LastSeen is when it last answered; zero if never. It is not part of the message.
	LastSeen time.Time
	// Limit is set if it answers, but sent more than is accepted of it, and was disconnected.
	Limit *LimitError
}

// Error names the cluster and the reason, but no time, so that the message is stable.
func (e *UnreachableError) Error() string {
	if e.Limit != nil {
		return fmt.Sprintf("cluster %s is disconnected: %s", e.Cluster, e.Reason)
	}
	return fmt.Sprintf("cluster %s is unreachable: %s", e.Cluster, e.Reason)
}

// Is makes errors.Is match ErrUnreachable.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

// WithheldError is the ErrNotEngaged of a cluster that Registry.Withhold was called for. It does not
// wrap the reason, which says how to react for the KubernetesCluster and for nothing else.
type WithheldError struct {
	// Cluster that is withheld.
	Cluster types.NamespacedName
	// Err says why.
	Err error
}

// Error names the cluster and why it is withheld.
func (e *WithheldError) Error() string {
	return fmt.Sprintf("cluster %s is %v: %v", e.Cluster, ErrNotEngaged, e.Err)
}

// Is makes errors.Is match ErrNotEngaged.
func (e *WithheldError) Is(target error) bool { return target == ErrNotEngaged }

// statusError is an answer with a status other than 2xx.
type statusError struct {
	path string
	code int
}

func (e *statusError) Error() string {
	switch e.code {
	case http.StatusUnauthorized:
		return "the API server refuses the credentials of the kubeconfig (401): renew them"
	case http.StatusForbidden:
		return fmt.Sprintf("the user of the kubeconfig may not get %s (403): grant it", e.path)
	}
	return fmt.Sprintf("the API server answers %s with %d %s", e.path, e.code, http.StatusText(e.code))
}

// notReady reports whether err is the answer of a server that cannot currently serve.
func notReady(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.code >= http.StatusInternalServerError || status.code == http.StatusTooManyRequests)
}

// describe returns why a request to a server failed, without the port, time or address of a single
// attempt, so that conditions do not change with each attempt.
func describe(err error) string {
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		status  *statusError
		limit   *LimitError
	)
	switch {
	case errors.As(err, &limit):
		return limit.Error()
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &dns):
		return fmt.Sprintf("host %s is not found", dns.Name)
	case errors.As(err, &unknown):
		return "its certificate is not signed by the certificate authority of the kubeconfig"
	case errors.As(err, &invalid):
		return "its certificate has expired or is not yet valid"
	case errors.As(err, &host):
		return host.Error()
	case errors.As(err, &alert):
		return "it refuses the client certificate of the kubeconfig: " + alert.Error()
	case errors.As(err, &record):
		return "it does not speak TLS"
	}
	return describeConnection(err)
}

func describeConnection(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer in time"
	case isCut(err):
		return "the connection was closed"
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Err != nil {
		return operation.Err.Error() // without the addresses, and so the port, of this try
	}
	return innermost(err).Error()
}

// isCut reports whether err means that a connection was closed. That need not be the server's
// doing: a load balancer, for example, may close connections that were idle for a while.
func isCut(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
