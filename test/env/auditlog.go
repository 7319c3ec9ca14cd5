package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

var sentinels atomic.Int64

// sentinelPath is requested to find out how far the log has to be read: the API server writes that
// it received a request before it carries it out, so every request that was answered before the
// sentinel was sent has a line before the sentinel's. The end of a request may be logged after its
// answer was sent, and after the sentinel's line.
const sentinelPath = "/livez/ping?audit-sentinel="

// readAudit continues to read the log, past a new sentinel.
func (c *Cluster) readAudit(ctx context.Context, log *auditLog) error {
	if !c.options.Audit {
		return fmt.Errorf("read audit log: cluster %s was started without Audit", c.options.Name)
	}
	log.sentinel = sentinelPath + strconv.FormatInt(sentinels.Add(1), 10) + "." + strconv.Itoa(os.Getpid())
	if err := c.ping(ctx, log.sentinel); err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	file, err := os.Open(c.file(auditLogFile))
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := log.read(file); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		c.audit.Lock()
		log.drop(c.audit.crash)
		c.audit.Unlock()
		if log.done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("read audit log: %w", ctx.Err())
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

// noteCrash records that requests in the log that have not ended never will.
func (c *Cluster) noteCrash() error {
	info, err := os.Stat(c.file(auditLogFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("measure audit log: %w", err)
	}
	c.audit.Lock()
	defer c.audit.Unlock()
	c.audit.crash = info.Size()
	return nil
}

// auditLog holds what was read from the log so far, in whole lines.
type auditLog struct {
	offset   int64                // of the next line
	earlier  map[string]int64     // requests of before, to leave out, by audit ID
	keep     []func(Request) bool // all have to be true
	sentinel string
	ends     bool             // the ends of pending are waited for
	sealed   bool             // the sentinel was seen: nothing but the ends of pending is of interest
	pending  map[string]int64 // offsets of the requests without an end, by audit ID
	requests []Request
}

// done reports whether nothing more has to be read.
func (a *auditLog) done() bool { return a.sealed && (!a.ends || len(a.pending) == 0) }

// read processes the content of the file beyond the offset, until done.
func (a *auditLog) read(file io.ReaderAt) error {
	content, err := io.ReadAll(io.NewSectionReader(file, a.offset, 1<<62))
	if err != nil {
		return err
	}
	for !a.done() {
		end := bytes.IndexByte(content, '\n')
		if end < 0 {
			return nil
		}
		var e auditEvent
		if err := json.Unmarshal(content[:end], &e); err != nil {
			return fmt.Errorf("decode line at byte %d: %w", a.offset, err)
		}
		a.take(e)
		content = content[end+1:]
		a.offset += int64(end) + 1
	}
	return nil
}

func (a *auditLog) take(e auditEvent) {
	switch {
	case strings.HasPrefix(e.RequestURI, sentinelPath):
		a.sealed = a.sealed || e.RequestURI == a.sentinel
	case e.Stage == "RequestReceived":
		if !a.sealed {
			a.receive(e.ID)
		}
	case e.Verb == "watch" && e.Stage != "ResponseStarted":
	default:
		_, received := a.pending[e.ID]
		delete(a.pending, e.ID)
		if received || !a.sealed {
			a.end(e)
		}
	}
}

func (a *auditLog) receive(id string) {
	if a.pending == nil {
		a.pending = map[string]int64{}
	}
	a.pending[id] = a.offset
}

func (a *auditLog) end(e auditEvent) {
	if _, earlier := a.earlier[e.ID]; earlier {
		return
	}
	r := e.request()
	if !slices.ContainsFunc(a.keep, func(k func(Request) bool) bool { return !k(r) }) {
		a.requests = append(a.requests, r)
	}
}

// drop forgets the requests that were received before the API server died at an offset.
func (a *auditLog) drop(crash int64) {
	maps.DeleteFunc(a.pending, func(_ string, offset int64) bool { return offset < crash })
}

// auditEvent is the part of audit.k8s.io/v1 Event that Request shows.
type auditEvent struct {
	ID         string    `json:"auditID"`
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
