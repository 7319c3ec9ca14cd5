package env

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// auditPolicy logs one line for a watch, when it begins, and two for any other request: when it was
// received and when it has ended. Requests that may last as long as the client likes are logged at
// their end only, so that a reader of the log does not wait for them. The control plane's own requests are not logged.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler, system:kwok]
- level: Metadata
  verbs: [watch]
  omitStages: [RequestReceived]
- level: Metadata
  resources:
  - resources: [pods/attach, pods/exec, pods/log, pods/portforward, pods/proxy, services/proxy]
  omitStages: [RequestReceived, ResponseStarted]
- level: Metadata
  omitStages: [ResponseStarted]
`

// Request is one request that the API server answered.
type Request struct {
	Time        time.Time
	User        string // as authenticated
	As          string // impersonated user; empty without impersonation
	UserAgent   string
	Verb        string // get, list, watch, create, update, patch, delete, ...
	Group       string // API group; empty for the core group
	Resource    string // plural; empty for paths like /version
	Subresource string
	Namespace   string
	Name        string
	URI         string // path and query
	Code        int    // HTTP status
}

// AuditMark is a point in a cluster's audit log.
type AuditMark struct {
	offset  int64
	pending map[string]int64 // offsets of the requests that were received but had not ended, by audit ID
}

// AuditMark returns the current end of the audit log. It is only for clusters that were started
// with Audit.
func (c *Cluster) AuditMark(ctx context.Context) (AuditMark, error) {
	c.audit.Lock()
	from := c.audit.marked
	c.audit.Unlock()
	log := auditLog{offset: from.offset, pending: maps.Clone(from.pending)}
	if err := c.readAudit(ctx, &log); err != nil {
		return AuditMark{}, err
	}
	mark := AuditMark{offset: log.offset, pending: log.pending}
	c.audit.Lock()
	defer c.audit.Unlock()
	if mark.offset > c.audit.marked.offset {
		c.audit.marked = mark
	}
	return mark, nil
}

// Requests returns the requests that the API server received after the mark and before the call,
// and for which every keep function is true, in the order in which they ended. It waits for those
// that have not ended. Watches are included as soon as they have begun.
func (c *Cluster) Requests(ctx context.Context, since AuditMark, keep ...func(Request) bool) ([]Request, error) {
	log := auditLog{offset: since.offset, earlier: since.pending, keep: keep, ends: true}
	err := c.readAudit(ctx, &log)
	return log.requests, err
}

// ByUser keeps the requests of one authenticated user.
func ByUser(name string) func(Request) bool {
	return func(r Request) bool { return r.User == name }
}

// Calls keeps the requests that count as calls in performance figures: everything except watches,
// the lists with which informers begin them (those name a resource version), and leases.
func Calls(r Request) bool {
	if r.Verb == "watch" || r.Resource == "leases" {
		return false
	}
	return r.Verb != "list" || !strings.Contains(r.URI, "resourceVersion=")
}

// Writes keeps the requests that change something.
func Writes(r Request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// Accepted keeps the requests that the API server did not refuse. These are the ones to count: an
// API server that is busy, or has a newer version of the object, refuses a write, which is then
// retried. That an object does not exist is a valid answer to a read.
func Accepted(r Request) bool {
	return r.Code < http.StatusBadRequest || r.Code == http.StatusNotFound && !Writes(r)
}
