package env

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// PodLogs is a Node of a cluster whose containers have one log, that of the test. It serves logs as a kubelet does, and nothing else of
// one. It is safe for concurrent use.
type PodLogs struct {
	server *httptest.Server
	nodes  kubernetes.Interface
	node   string

	mu      sync.Mutex
	lines   []podLine
	readers int           // since the beginning
	changed chan struct{} // closed, and replaced, when one of these has
}

type podLine struct {
	at   time.Time
	text string
}

// ServePodLogs creates the Node. Pods whose spec.nodeName is that one have the log.
func (c *Cluster) ServePodLogs(ctx context.Context, node string) (*PodLogs, error) {
	nodes, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("create Node %s: %w", node, err)
	}
	l := &PodLogs{nodes: nodes, node: node, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", l.serve)
	l.server = httptest.NewUnstartedServer(mux)
	if l.server.TLS, err = c.KubeletTLS(); err != nil {
		l.server.Close()
		return nil, err
	}
	l.server.TLS.NextProtos = []string{"http/1.1"}
	l.server.StartTLS()
	if err := l.announce(ctx, int32(l.server.Listener.Addr().(*net.TCPAddr).Port)); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

func (l *PodLogs) announce(ctx context.Context, port int32) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.node}}
	node, err := l.nodes.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Node %s: %w", l.node, err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err := l.nodes.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("say where the kubelet of Node %s is: %w", l.node, err)
	}
	return nil
}

// Stop ends the server, and deletes the Node.
func (l *PodLogs) Stop() {
	l.server.CloseClientConnections()
	l.server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), Limit) // that of the test may have ended
	defer cancel()
	_ = l.nodes.CoreV1().Nodes().Delete(ctx, l.node, metav1.DeleteOptions{}) // the cluster may have stopped
}

// Write has the container write a line.
func (l *PodLogs) Write(text string) {
	l.change(func() { l.lines = append(l.lines, podLine{time.Now().UTC(), text}) })
}

func (l *PodLogs) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// AwaitFollower returns when the log was followed so many times.
func (l *PodLogs) AwaitFollower(ctx context.Context, times int) error {
	for {
		l.mu.Lock()
		readers, changed := l.readers, l.changed
		l.mu.Unlock()
		if readers >= times {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the log was followed %d times, not %d: %w", readers, times, ctx.Err())
		case <-changed:
		}
	}
}

// serve sends the lines that a request asks for, and those to come if it follows.
func (l *PodLogs) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime")) // zero for all
	l.mu.Lock()
	next := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		next = max(0, len(l.lines)-tail)
	}
	l.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	follow := query.Get("follow") == "true"
	if follow {
		l.change(func() { l.readers++ })
	}
	for {
		l.mu.Lock()
		lines, changed := l.lines[next:], l.changed
		next = len(l.lines)
		l.mu.Unlock()
		for _, line := range lines {
			if line.at.Before(since) {
				continue
			}
			if query.Get("timestamps") == "true" {
				_, _ = io.WriteString(w, line.at.Format(time.RFC3339Nano)+" ") // the client may have left
			}
			_, _ = io.WriteString(w, line.text+"\n")
		}
		if !follow {
			return
		}
		_ = http.NewResponseController(w).Flush() // the client may have left
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
