package dashboard

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/logs"
)

const (
	// tailLines and maxLogBytes bound the log on a page.
	tailLines   = 500
	maxLogBytes = 256 << 10
	// maxLogLine is how much of a line is sent at once.
	maxLogLine = 8 << 10
	// followFor is how long a log is followed at most. The page can be opened again.
	followFor = time.Hour
)

func logsLink(cluster types.NamespacedName, namespace, pod string) string {
	parts := []string{cmp.Or(cluster.Namespace, "-"), cmp.Or(cluster.Name, "-"), namespace, pod}
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/logs/" + strings.Join(parts, "/")
}

// podOf reads the Pod that a request is about, as the viewer.
func (s *server) podOf(ctx context.Context, w http.ResponseWriter, r *http.Request) (*fleet.Cluster, *logs.Pod, bool) {
	at := addressOf(r.PathValue)
	at.resource, at.name = "pods", r.PathValue("pod")
	cluster, err := viewerOf(r).cluster(ctx, at.cluster)
	if err != nil {
		s.explain(w, r, cluster, at, false, err)
		return nil, nil, false
	}
	pod, err := logs.PodOf(ctx, cluster, types.NamespacedName{Namespace: at.namespace, Name: at.name})
	if err != nil {
		s.explain(w, r, cluster, at, apierrors.IsNotFound(err) || apierrors.IsForbidden(err), err)
		return nil, nil, false
	}
	return cluster, pod, true
}

// logs shows the end of what a container of a Pod has written.
func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readWithin)
	defer cancel()
	cluster, pod, ok := s.podOf(ctx, w, r)
	if !ok {
		return
	}
	container, previous := r.URL.Query().Get("container"), r.URL.Query().Get("previous") == "true"
	if container == "" {
		container = pod.Default()
	}
	most, bytes := int64(tailLines), int64(maxLogBytes)
	model := map[string]any{
		"Pod": pod.Name, "Namespace": pod.Namespace, "Cluster": cluster.Name(), "Containers": pod.Containers(), "Container": container, "Previous": previous,
		"Lines": tailLines, "Link": r.URL.Path, "Phase": string(pod.Status.Phase),
		"Follow": r.URL.Path + "/follow?" + url.Values{"container": {container}}.Encode(),
	}
	log, err := pod.Read(ctx, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &most, LimitBytes: &bytes})
	if err == nil {
		defer func() { _ = log.Close() }() // nothing was written
		var text []byte
		text, err = io.ReadAll(io.LimitReader(log, maxLogBytes))
		model["Text"] = strings.ToValidUTF8(string(text), "\uFFFD")
	}
	status := http.StatusOK
	if err != nil {
		model["Failure"] = cluster.Explain(err).Error()
		if apierrors.IsForbidden(err) {
			status = http.StatusForbidden
		}
	}
	s.show(w, r, "logs", status, page{Title: "Logs of " + pod.Name, Area: "fleet", Model: model})
}

// followLogs sends what a container writes from now on, as server-sent events. It counts as an open page.
func (s *server) followLogs(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r)
	ctx, cancel := context.WithTimeout(r.Context(), followFor)
	defer cancel()
	if !v.until.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, v.until)
		defer cancel()
	}
	if err := s.spend(v.viewer); err != nil {
		askAgain(w, freeAgain)
		http.Error(w, "Too many requests: the log is not followed for now.", http.StatusTooManyRequests)
		return
	}
	end, err := s.takeLog(v.viewer)
	if err != nil {
		askAgain(w, closeAgain)
		http.Error(w, "Too many logs are followed, or pages open: close some.", http.StatusTooManyRequests)
		return
	}
	defer end()
	cluster, pod, ok := s.podOf(ctx, w, r)
	if !ok {
		return
	}
	none := int64(0)
	log, err := pod.Read(ctx, &corev1.PodLogOptions{Container: r.URL.Query().Get("container"), Follow: true, TailLines: &none})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = log.Close() }() // nothing was written
	stop := context.AfterFunc(s.ctx, func() { _ = log.Close() })
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	t := &told{server: s, visit: v, w: w, control: http.NewResponseController(w), reached: v.now(), object: &shown{at: addressOf(r.PathValue).cluster, in: cluster, what: authorizationv1.ResourceAttributes{
		Verb: "get", Resource: "pods", Subresource: "log", Namespace: pod.Namespace, Name: pod.Name,
	}}}
	if err := t.lines(ctx, log); err == nil {
		t.send("event: end\ndata: The container has ended.\n\n")
	}
}

// takeLog has a log that is followed count as an open page, and as a log; errTooMany if there are too many of either.
func (s *server) takeLog(v *viewer) (end func(), err error) {
	_, leave, err := s.inventory.feed.subscribe(v, nil)
	if err != nil || s.budget == nil {
		return leave, err
	}
	done, _ := s.budget.log(v.name)
	if done == nil {
		leave()
		return nil, errTooMany
	}
	return func() {
		done()
		leave()
	}, nil
}

// lines sends lines until there are no more, the session ends, the viewer may not read them any more, or the browser does
// not take them. API servers ask for rights only when a log is opened, and a user cluster does not know who has a way into it.
func (t *told) lines(ctx context.Context, log io.Reader) error {
	reader := bufio.NewReaderSize(log, maxLogLine)
	reviewed := time.Now()
	if !t.send(": connected\n\n") {
		return errors.New("the browser has left")
	}
	for {
		line, err := reader.ReadSlice('\n')
		if time.Since(reviewed) > t.pace.review {
			reviewed = time.Now()
			if t.over != nil && t.over() {
				return errors.New("the session has ended")
			}
			if ok, why := t.may(ctx, t.object.in, t.object.what); !ok {
				return errors.New(why)
			}
			if err := t.reaches(ctx); err != nil {
				return err
			}
		}
		if len(line) > 0 {
			text := strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")
			if !t.send(fmt.Sprintf("data: %s\n\n", strings.ReplaceAll(text, "\r", " "))) {
				return errors.New("the browser has left")
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
