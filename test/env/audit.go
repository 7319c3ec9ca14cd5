package env

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// auditPolicy logs one line per request: for a watch when it begins, for anything
// else when it has ended. The control plane's own requests stay out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler, system:kwok]
- level: Metadata
  verbs: [watch]
  omitStages: [RequestReceived]
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
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
type AuditMark struct{ offset int64 }

// AuditMark returns the present end of the audit log. Only for clusters that were
// started with Audit.
func (c *Cluster) AuditMark(ctx context.Context) (AuditMark, error) {
	_, end, err := c.readAudit(ctx, 0, func(Request) bool { return false })
	return AuditMark{offset: end}, err
}

// Requests returns the requests that ended after the mark and for which every
// keep function is true, in the order in which they ended. Watches are there as
// soon as they have begun. All requests that were answered before the call are
// included.
func (c *Cluster) Requests(ctx context.Context, since AuditMark, keep ...func(Request) bool) ([]Request, error) {
	requests, _, err := c.readAudit(ctx, since.offset, func(r Request) bool {
		return !slices.ContainsFunc(keep, func(k func(Request) bool) bool { return !k(r) })
	})
	return requests, err
}

// ByUser keeps the requests of one authenticated user.
func ByUser(name string) func(Request) bool {
	return func(r Request) bool { return r.User == name }
}

// Calls keeps what counts as a call in performance figures: everything except
// watches, the lists with which informers begin them (those name a resource
// version), and leases.
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

var sentinels atomic.Int64

// sentinelPath is requested to find out whether the log is complete: a request's
// line may be written after its answer was sent, but the line of a later request
// comes after it.
const sentinelPath = "/livez/ping?audit-sentinel="

func (c *Cluster) readAudit(ctx context.Context, from int64, keep func(Request) bool) ([]Request, int64, error) {
	if !c.options.Audit {
		return nil, 0, fmt.Errorf("read audit log: cluster %s was started without Audit", c.options.Name)
	}
	sentinel := sentinelPath + strconv.FormatInt(sentinels.Add(1), 10) + "." + strconv.Itoa(os.Getpid())
	if err := c.ping(ctx, sentinel); err != nil {
		return nil, 0, fmt.Errorf("read audit log: %w", err)
	}
	file, err := os.Open(c.file("audit.log"))
	if err != nil {
		return nil, 0, fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader := auditReader{file: file, offset: from, keep: keep, sentinel: sentinel}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := reader.read(); err != nil {
			return nil, 0, fmt.Errorf("read audit log: %w", err)
		}
		if reader.complete {
			return reader.requests, reader.offset, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("read audit log: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (c *Cluster) ping(ctx context.Context, uri string) error {
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return getOK(ctx, client, c.admin.Host+uri)
}

// auditReader reads the log in steps, whole lines only, up to the sentinel's.
type auditReader struct {
	file     *os.File
	offset   int64
	keep     func(Request) bool
	sentinel string
	requests []Request
	complete bool
}

func (a *auditReader) read() error {
	content, err := io.ReadAll(io.NewSectionReader(a.file, a.offset, 1<<62))
	if err != nil {
		return err
	}
	for !a.complete {
		end := bytes.IndexByte(content, '\n')
		if end < 0 {
			return nil
		}
		if err := a.line(content[:end]); err != nil {
			return err
		}
		content = content[end+1:]
		a.offset += int64(end) + 1
	}
	return nil
}

func (a *auditReader) line(line []byte) error {
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("decode line at byte %d: %w", a.offset, err)
	}
	switch {
	case e.RequestURI == a.sentinel:
		a.complete = true
	case strings.HasPrefix(e.RequestURI, sentinelPath), e.Verb == "watch" && e.Stage != "ResponseStarted":
	default:
		if r := e.request(); a.keep(r) {
			a.requests = append(a.requests, r)
		}
	}
	return nil
}

// auditEvent is the part of audit.k8s.io/v1 Event that Request shows.
type auditEvent struct {
	Stage      string    `json:"stage"`
	RequestURI string    `json:"requestURI"`
	Verb       string    `json:"verb"`
	UserAgent  string    `json:"userAgent"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	User       auditUser `json:"user"`
	As         auditUser `json:"impersonatedUser"`
	Object     struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Group       string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

type auditUser struct {
	Name string `json:"username"`
}

func (e auditEvent) request() Request {
	return Request{
		Time: e.Received, User: e.User.Name, As: e.As.Name, UserAgent: e.UserAgent, Verb: e.Verb,
		Group: e.Object.Group, Resource: e.Object.Resource, Subresource: e.Object.Subresource,
		Namespace: e.Object.Namespace, Name: e.Object.Name, URI: e.RequestURI, Code: e.Status.Code,
	}
}
