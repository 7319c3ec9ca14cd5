package env

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// poolVariable holds the socket of the pool that Start and Shared borrow clusters from.
const poolVariable = "WAYBILL_TEST_POOL"

// most is how many clusters a pool keeps, those that are lent included: each takes half a gigabyte. Where
// more are needed at the same time, more are started, and none wait to be lent again.
const most = 14

// Pool lends clusters to the test binaries of one `go test`, one after the other: a cluster that is
// given back is restored to what it was when it had just started, which takes a fraction of a start.
type Pool struct {
	listener net.Listener
	lock     *os.File // of the socket; nil if it has a path of its own

	mu      sync.Mutex
	idle    []*pooled // the one that has waited longest is the first
	inUse   int       // lent, or being started for that
	started int
	lent    int
}

// pooled is a cluster of a pool.
type pooled struct {
	*Cluster
	shape  string
	before *baseline
	// restored is closed when it can be lent again, or cannot, which is failed.
	restored chan struct{}
	failed   error
}

// NewPool starts a pool. It serves the processes that Environment is given to, until Close.
func NewPool() (*Pool, error) {
	socket, lock, err := poolSocket()
	if err != nil {
		return nil, fmt.Errorf("start pool of clusters: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("start pool of clusters: %w", err)
	}
	p := &Pool{listener: listener, lock: lock}
	go p.accept()
	return p, nil
}

// poolSocket returns where the pool listens: for the same repository always at the same path, because
// go test keeps the results of tests whose environment is the same; and at another where another process
// has that path, which holds its lock.
func poolSocket() (path string, lock *os.File, err error) {
	base, err := baseDir()
	if err != nil {
		return "", nil, err
	}
	root, err := Root()
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(root))
	path = filepath.Join(base, "pool-"+hex.EncodeToString(sum[:6]))
	lock, err = lockFile(path+".lock", try)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		dir, err := tempDir("pool")
		return filepath.Join(dir, "socket"), nil, err
	}
	if err != nil {
		return "", nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that was killed
		return "", nil, errors.Join(err, lock.Close())
	}
	return path, lock, nil
}

// Environment makes a process, and its children, borrow clusters from the pool.
func (p *Pool) Environment() string { return poolVariable + "=" + p.listener.Addr().String() }

// Close ends lending. Clusters are stopped by StopAll.
func (p *Pool) Close() {
	_ = p.listener.Close()
	if p.lock != nil {
		_ = p.lock.Close()
	}
}

// Summary says how many clusters were started, and how often one was lent.
func (p *Pool) Summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d control planes started, lent %d times", p.started, p.lent)
}

func (p *Pool) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		go p.serve(conn)
	}
}

// serve lends one cluster, until the other end closes the connection or dies.
func (p *Pool) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	requests, answers := json.NewDecoder(conn), json.NewEncoder(conn)
	var o Options
	if requests.Decode(&o) != nil {
		return
	}
	ctx := context.Background() // bounded by the start's own limit
	c, err := p.take(ctx, o)
	if err != nil {
		p.mu.Lock()
		p.inUse--
		p.mu.Unlock()
		_ = answers.Encode(lending{Error: err.Error()})
		return
	}
	defer func() {
		p.offer(c)
		_ = answers.Encode(lending{}) // the borrower, if there still is one, may borrow it again at once
		p.renew(ctx, c)
	}()
	terms, err := c.lending()
	if err != nil || answers.Encode(terms) != nil {
		return
	}
	for {
		var call string
		if requests.Decode(&call) != nil || answers.Encode(lending{Error: c.answer(ctx, call)}) != nil {
			return
		}
	}
}

// take returns a cluster with these options: one that waits, or a new one. It counts as in use from now on, also if
// there is an error.
func (p *Pool) take(ctx context.Context, o Options) (*pooled, error) {
	p.mu.Lock()
	p.lent++
	p.inUse++
	p.mu.Unlock()
	o.Audit = true // which suits those who do not need it, too
	shape, err := shapeOf(o)
	if err != nil {
		return nil, err
	}
	for {
		c := p.takeIdle(shape)
		if c == nil {
			p.trim()
			return p.start(ctx, o, shape)
		}
		<-c.restored
		if c.failed == nil {
			return c, nil
		}
	}
}

// shapeOf returns what clusters have in common that can be lent for one another.
func shapeOf(o Options) (string, error) {
	o.Name = ""
	shape, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("compare options: %w", err)
	}
	return string(shape), nil
}

func (p *Pool) takeIdle(shape string) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(c *pooled) bool { return c.shape == shape })
	if i < 0 {
		return nil
	}
	c := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return c
}

func (p *Pool) start(ctx context.Context, o Options, shape string) (*pooled, error) {
	p.mu.Lock()
	p.started++
	p.mu.Unlock()
	cluster, err := StartCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	before, err := cluster.remember(ctx)
	if err != nil {
		cluster.Stop()
		return nil, err
	}
	return &pooled{Cluster: cluster, shape: shape, before: before}, nil
}

// offer has a cluster that was given back wait for whom to lend it to next, who waits until it is renewed
// rather than start another one.
func (p *Pool) offer(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.restored = make(chan struct{})
	p.idle = append(p.idle, c)
	p.inUse--
}

// renew restores a cluster that is offered, and stops those that have waited longest if there are too many.
func (p *Pool) renew(ctx context.Context, c *pooled) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	c.failed = c.restore(ctx, c.before)
	close(c.restored)
	if c.failed != nil {
		fmt.Fprintln(os.Stderr, "pool:", c.failed)
		p.remove(c)
		c.Stop()
	}
	p.trim()
}

// trim stops those that have waited longest while there are too many.
func (p *Pool) trim() {
	for surplus := p.surplus(); surplus != nil; surplus = p.surplus() {
		<-surplus.restored
		surplus.Stop()
	}
}

// surplus takes a cluster out of those that wait, if there are too many.
func (p *Pool) surplus() *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 || len(p.idle)+p.inUse <= most {
		return nil
	}
	c := p.idle[0]
	p.idle = slices.Delete(p.idle, 0, 1)
	return c
}

func (p *Pool) remove(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(i *pooled) bool { return i == c })
}

// What a borrower may ask for.
const (
	killAPIServer  = "kill the API server"
	startAPIServer = "start the API server"
)

// answer does what the borrower asks for, and returns what went wrong.
func (c *pooled) answer(ctx context.Context, call string) string {
	err := errors.New("this is not offered: " + call)
	switch call {
	case killAPIServer:
		err = c.KillAPIServer()
	case startAPIServer:
		ctx, cancel := context.WithTimeout(ctx, Limit)
		defer cancel()
		err = c.StartAPIServer(ctx)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// absolute returns paths as they are for a process in another directory.
func absolute(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", strings.Join(paths, ", "), err)
		}
		all = append(all, path)
	}
	return all, nil
}
