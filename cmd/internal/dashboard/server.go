package dashboard

import (
	"bytes"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/render/values/schema"
)

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

// readWithin bounds what a page reads from clusters when it is asked for.
const readWithin = 30 * time.Second

const (
	// maxBody is how much a browser may send, sendForm how long that may take, and takePage how long it may take to read a page.
	maxBody  = 2 << 20
	sendForm = 30 * time.Second
	takePage = time.Minute
)

// server serves the pages.
type server struct {
	ctx       context.Context // of the program
	hub       *fleet.Cluster  // as who started the dashboard
	inventory *inventory
	door      door
	pace      pace
	sendForm  time.Duration
	// budget of those who use it; nil for the only user of their own machine.
	budget *budget
	pages  map[string]*template.Template
	// systemNamespace of the hub, and sources that pages look into.
	systemNamespace string
	sources         sources
	compiled        *keyed.Recent[string, *schema.Schema] // schemas of values, by digest
	trees           trees                                 // that open pages show
}

// door lets browsers in, and says who they are.
type door interface {
	// routes adds what browsers can ask for before they have signed in.
	routes(mux *http.ServeMux)
	// require serves only who was let in, as requests that have a viewer.
	require(next http.Handler) http.Handler
	// host reports whether the dashboard answers to a host and port.
	host(named string) bool
}

// newLocal returns the dashboard of the user of a kubeconfig, for one browser of this machine. namespace is what is
// read if the user may not read all.
func newLocal(ctx context.Context, hub *fleet.Cluster, namespace string) (*server, *session, error) {
	user := newViewer("", nil, hub)
	user.own = true
	one := newSession(user)
	s, err := newServer(ctx, hub, namespace, one)
	if err != nil {
		return nil, nil, err
	}
	s.sources.here = true
	return s, one, nil
}

func newServer(ctx context.Context, hub *fleet.Cluster, namespace string, by door) (*server, error) {
	found, err := newInventory(hub, namespace)
	if err != nil {
		return nil, err
	}
	s := &server{
		ctx: ctx, hub: hub, inventory: found, door: by, pace: defaultPace, sendForm: sendForm, pages: map[string]*template.Template{}, systemNamespace: v1alpha1.DefaultSystemNamespace,
		compiled: keyed.NewRecent[string, *schema.Schema](maxCompiled),
		trees:    trees{again: refusedAgain, within: drawnWithin},
	}
	for _, name := range []string{
		"fleet", "catalog", "entry", "install", "confirminstall", "syncs", "object", "tree", "values", "revisions", "manifests", "diff", "commit", "logs",
		"rights", "upgrade", "rollback", "confirm", "refused", "search", "error",
	} {
		s.pages[name], err = template.New("base.html").Funcs(functions).ParseFS(templates, "templates/base.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse the pages: %w", err)
		}
	}
	return s, nil
}

// handler returns what answers requests.
func (s *server) handler() (http.Handler, error) {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", s.remembers(s.fleet))
	pages.HandleFunc("GET /catalog", s.remembers(s.catalog))
	pages.HandleFunc("GET /gitsyncs", s.remembers(s.syncs))
	pages.HandleFunc("GET /search", s.remembers(s.search))
	pages.HandleFunc("GET /logos/{name}", s.logo)
	pages.HandleFunc("GET /catalog/{definition}", s.remembers(s.entry))
	pages.HandleFunc("GET /catalog/{definition}/install", s.reads(s.install))
	pages.HandleFunc("POST /catalog/{definition}/install", s.reads(s.install))
	pages.HandleFunc("GET /logs/{clusterNamespace}/{cluster}/{namespace}/{pod}", s.reads(s.logs))
	pages.HandleFunc("GET /logs/{clusterNamespace}/{cluster}/{namespace}/{pod}/follow", s.followLogs)
	const object = "/objects/{clusterNamespace}/{cluster}/{resource}/{namespace}/{name}"
	pages.HandleFunc("GET "+object, s.about(s.object))
	for name, page := range map[string]func(context.Context, http.ResponseWriter, *http.Request, *subject){
		"tree": s.tree, "values": s.values, "revisions": s.revisions, "manifests": s.manifests, "diff": s.diff, "commit": s.commit, "rights": s.rights,
	} {
		pages.HandleFunc("GET "+object+"/"+name, s.about(page))
	}
	pages.HandleFunc("GET "+object+"/actions/{action}", s.about(s.action))
	pages.HandleFunc("POST "+object+"/actions/{action}", s.about(s.act))
	pages.HandleFunc("GET /live", s.live)
	all := http.NewServeMux()
	all.Handle("GET /static/", http.FileServerFS(static))
	// Browsers ask for it where a page names no icon, as what refuses them does.
	all.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, static, "static/icon.svg") })
	s.door.routes(all)
	all.Handle("/", s.door.require(s.noteSeen(pages)))
	zipped, err := compressed(all)
	return headers(s.hurry(named(s.door, http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(zipped, maxBody))))), err
}

// hurry bounds how long the body of a request may take, also before it is known who sends it: each holds a connection, and those of
// users a part of what they may have under way.
func (s *server) hurry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(s.sendForm)) // those in tests cannot
			r.Body = &body{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// body is one that is to be sent by a time. Once it was, the connection has all the time for what is answered.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // those in tests cannot
	}
	return n, err
}

type seenKey struct{}

// noteSeen has pages say which changes they have seen at least: those before anything was read for them.
func (s *server) noteSeen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), seenKey{}, s.inventory.feed.now())))
	})
}

// serve answers at the listener until the context of the server ends: by TLS and HTTP/2, unless secure is nil.
func (s *server) serve(listener net.Listener, secure *tls.Config) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, TLSConfig: secure}
	stopped := make(chan error, 1)
	go func() {
		<-s.ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 3*time.Second)
		defer cancel()
		stopped <- web.Shutdown(ctx)
	}()
	serve := web.Serve
	if secure != nil {
		serve = func(l net.Listener) error { return web.ServeTLS(l, "", "") }
	}
	defer s.sources.close()
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return <-stopped
}

// page is what every page has.
type page struct {
	Title string
	// Area is the entry of the menu that the page belongs to.
	Area string
	Hub  string
	// User is who the page is shown to, if others use the dashboard as well. SignOut says that they can.
	User    string
	SignOut bool
	// Kinds that the page is about, and One, as NAMESPACE/NAME, if it is about one object of its only kind; Object, if it is about one of
	// a cluster: see live. Version is that of the object where the page is not read again when it changes.
	Kinds   []string
	One     string
	Object  string
	Version string
	// Seen is what its stream is to catch up with.
	Seen uint64
	// Troubles say what keeps the page from being complete.
	Troubles []string
	Query    string
	Model    any
}

// show renders a page. What is shown is known in full before anything is sent.
func (s *server) show(w http.ResponseWriter, r *http.Request, name string, status int, p page) {
	p.Hub = s.hub.Name()
	p.Seen, _ = r.Context().Value(seenKey{}).(uint64) // pages without a session have no stream
	if v := visitOf(r); v.viewer != nil {
		p.User, p.SignOut = v.name, v.signedIn
	}
	p.Troubles = append(s.inventory.troubles(r.Context(), viewerOf(r), p.Kinds), p.Troubles...)
	var body bytes.Buffer
	if err := s.pages[name].Execute(&body, p); err != nil {
		http.Error(w, "The page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(takePage)) // those in tests cannot
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the browser may have left
}

// fail shows why there is no page. Pages that are open keep what they had while a server does not answer, and not after it has
// refused: that is 403.
func (s *server) fail(w http.ResponseWriter, r *http.Request, status int, title string, err error) {
	if status == http.StatusBadGateway && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		status = http.StatusForbidden
	}
	s.show(w, r, "error", status, page{Title: title, Model: err.Error()})
}
