package intake

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"waybill.dev/waybill/api/expansion"
)

const (
	// maxBody is the size of the largest AdmissionReview: API servers accept objects of up to 3 MiB,
	// and send the old object as well.
	maxBody = 7 << 20

	// readTimeout bounds how long a body takes to arrive: a slow sender must not hold what others
	// wait for.
	readTimeout = 3 * time.Second

	// maxValues is how many values, keys included, an AdmissionReview may have. What is too large for
	// a handler should reach it, so that users learn why: but not what only strangers send, such as
	// millions of groups of a user.
	maxValues = 1_500_000
)

// The budgets. Together with what the process needs at rest they are less than the container has.
const (
	// small is the size of bodies that have budgets of their own: the large ones of some do not keep
	// others waiting.
	small = 256 << 10

	// smallRead and largeRead are what may be read at once. Requests do not wait for that: a body
	// that is not read stops all others of the same connection.
	smallRead = 8 << 20
	largeRead = 3 * maxBody

	// copies is how often a body is in memory while it is answered, beside the one that was read:
	// decoded, with and without defaults, and encoded again.
	copies = 7

	// smallAnswered and largeAnswered are what the copies may take.
	smallAnswered = 24 << 20
	largeAnswered = copies * maxBody

	// valueBytes is what a value takes while the trees of two versions of an object are compared.
	valueBytes = 300

	// decoded is the budget for objects that are decoded.
	decoded = 64 << 20
)

// NewDecoded returns the Budget for what handlers decode; see DecodedSize.
func NewDecoded() *Budget { return NewBudget(decoded) }

// DecodedSize estimates how many bytes so many values take.
func DecodedSize(values int) int64 { return int64(values) * valueBytes }

// Options of a Server.
type Options struct {
	webhook.Options

	// Clients are the clients that may call.
	Clients Clients

	// Timeout is how long a request may take, from its first byte to its answer.
	Timeout time.Duration
}

// Server is a webhook server that bounds what it takes in.
type Server struct {
	webhook.Server
	options Options
	lanes   lanes
}

// NewServer returns a Server. All its handlers share its budgets for the bodies that they are sent.
func NewServer(o Options) *Server {
	o.TLSOpts = append(o.TLSOpts, func(c *tls.Config) { o.Clients.configure(c) })
	return &Server{Server: webhook.NewServer(o.Options), options: o, lanes: lanes{
		small: lane{read: NewBudget(smallRead), answered: NewBudget(smallAnswered)},
		large: lane{read: NewBudget(largeRead), answered: NewBudget(largeAnswered)},
	}}
}

// Register implements webhook.Server.
func (s *Server) Register(path string, hook http.Handler) {
	s.Server.Register(path, &entrance{options: s.options, lanes: s.lanes, next: hook})
}

// lanes are the budgets for bodies, by size.
type lanes struct{ small, large lane }

// lane has a Budget for what is read, and one for the copies of what is being answered.
type lane struct{ read, answered *Budget }

func (l lanes) of(size int64) lane {
	if size <= small {
		return l.small
	}
	return l.large
}

// entrance lets requests pass to next.
type entrance struct {
	options Options
	lanes   lanes
	next    http.Handler
}

// ServeHTTP implements http.Handler. What it refuses gets no AdmissionReview: nothing was decoded, so
// it is unknown for which request it would be. The failure policy decides about the object.
func (e *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), e.options.Timeout)
	defer cancel()
	if err := e.options.Clients.admit(r.TLS); err != nil {
		refuse(w, http.StatusForbidden, reasonClient, err)
		return
	}
	size := r.ContentLength
	if size < 0 {
		refuse(w, http.StatusLengthRequired, reasonSize, errors.New("the request does not say how large it is"))
		return
	}
	if size > maxBody {
		refuse(w, http.StatusRequestEntityTooLarge, reasonSize, fmt.Errorf("the request is larger than %d bytes", maxBody))
		return
	}
	lane := e.lanes.of(size)
	release, ok := lane.read.TryAcquire(size)
	if !ok {
		busy(w)
		return
	}
	defer release()
	body, err := read(w, r, size)
	if err != nil {
		refuse(w, http.StatusBadRequest, reasonBody, fmt.Errorf("read the request: %w", err))
		return
	}
	if err := expansion.JSON(body, maxValues); err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, reasonWeight, fmt.Errorf("the request is not decoded: %w", err))
		return
	}
	answered, err := lane.answered.Acquire(ctx, size*copies)
	if err != nil {
		busy(w)
		return
	}
	defer answered()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	e.next.ServeHTTP(w, r)
}

// read reads the body within readTimeout.
func read(w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
		return nil, err
	}
	defer func() { _ = control.SetReadDeadline(time.Time{}) }() // the connection serves other requests
	body := make([]byte, size)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// busy refuses what there is no room for. API servers try again, within their timeout.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, reasonBusy, ErrBusy)
}

// refuse answers without a decision, and counts that.
func refuse(w http.ResponseWriter, code int, reason string, err error) {
	turnedAway.WithLabelValues(reason).Inc()
	http.Error(w, err.Error(), code)
}
