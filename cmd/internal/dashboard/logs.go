package dashboard

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// maxMissed is how many lines are sent that were written before a log is followed: as many as a page shows.
	maxMissed = 2000
)

// errAskAgain ends a stream that the page opens again.
var errAskAgain = errors.New("the stream has lasted as long as one may")

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
	}
	log, err := pod.Read(ctx, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &most, LimitBytes: &bytes, Timestamps: true})
	if err == nil {
		defer func() { _ = log.Close() }() // nothing was written
		var raw []byte
		raw, err = io.ReadAll(io.LimitReader(log, maxLogBytes))
		text, last := unstamped(string(raw))
		model["Text"] = strings.ToValidUTF8(text, "\uFFFD")
		follow := url.Values{"container": {container}}
		if !last.IsZero() || text == "" { // all that is written later
			follow.Set("since", last.Format(time.RFC3339Nano))
		}
		model["Follow"] = r.URL.Path + "/follow?" + follow.Encode()
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

// unstamped returns lines without the times in front of them, and the last of these.
func unstamped(lines string) (text string, last time.Time) {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		at, rest := stamped(line)
		if !at.IsZero() {
			last = at
		}
		b.WriteString(rest)
	}
	return b.String(), last
}

// stamped returns when a line was written, and the line without that; the zero time if it does not say.
func stamped(line string) (at time.Time, rest string) {
	stamp, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, strings.TrimRight(stamp, "\r\n"))
	if err != nil {
		return time.Time{}, line
	}
	return at, rest
}

// followLogs sends what a container writes after the time that the query has, as server-sent events. It counts as an open page. The page
// opens another when it has lasted as long as it may.
func (s *server) followLogs(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r)
	life := s.pace.life
	if v.vouched {
		life = s.pace.vouched
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), spread(life), errAskAgain)
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
	options := &corev1.PodLogOptions{Container: r.URL.Query().Get("container"), Follow: true, TailLines: new(int64), Timestamps: true}
	since, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since"))
	if err == nil {
		*options.TailLines = maxMissed
	}
	if !since.IsZero() {
		options.SinceTime = &metav1.Time{Time: since.Truncate(time.Second)} // API servers know only seconds
	}
	log, err := pod.Read(ctx, options)
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
	err = t.lines(ctx, log, since)
	switch {
	case err == nil:
		t.send("event: end\ndata: The container has ended.\n\n")
	case errors.Is(context.Cause(ctx), errAskAgain):
		t.send(bye)
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

// lines sends lines that were written after a time until there are no more, the session ends, the viewer may not read them any more, or the
// browser does not take them. Each has the time when it was written as its id. API servers ask for rights only when a log is opened, and
// a user cluster does not know who has a way into it.
func (t *told) lines(ctx context.Context, log io.Reader, since time.Time) error {
	reader := bufio.NewReaderSize(log, maxLogLine)
	reviewed := time.Now()
	begins, seen, id := true, false, ""
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
		text := string(line)
		if begins {
			var at time.Time
			at, text = stamped(text)
			seen, id = !at.IsZero() && !at.After(since), ""
			if !at.IsZero() {
				id = "id: " + at.Format(time.RFC3339Nano) + "\n"
			}
		}
		if len(line) > 0 && !seen && !t.send(id+"data: "+oneLine(text)+"\n\n") {
			return errors.New("the browser has left")
		}
		begins = err == nil
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// oneLine returns a line as an event can have it.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(strings.TrimRight(text, "\r\n"), "\uFFFD"), "\r", " ")
}
