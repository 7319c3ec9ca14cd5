package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-logr/logr"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/sync/excerpt"
)

const (
	sessionCookie = "__Host-waybill"
	signInCookie  = "__Host-waybill-sign-in"
	callbackPath  = "/sign-in/callback"
	signOutPath   = "/sign-out"
	signedOutPath = "/signed-out"
	// signInHeader tells scripts that are refused that opening a page leads to the provider, and back to it.
	signInHeader = "Waybill-Sign-In"

	// signInWithin is how long a user may take at the provider, providerWithin how long the provider may take, and
	// maxAnswer how much it may say.
	signInWithin   = 10 * time.Minute
	providerWithin = 15 * time.Second
	maxAnswer      = 1 << 20
	// maxSignedOut is how many sessions are remembered that were ended before their time.
	maxSignedOut = 10_000
)

// OIDC says which provider people sign in with, and who they are by what it says. The names are those of kube-apiserver's
// flags: with the values that the API server has, people have the rights here that they have with kubectl.
type OIDC struct {
	IssuerURL, ClientID string
	// ClientSecretFile has the secret of the client; empty for a public client.
	ClientSecretFile string
	// CAFile has the authority of the provider's certificate; empty for those of the system.
	CAFile string
	// Scopes that are asked for beside openid.
	Scopes []string

	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
}

// ticket is what a browser holds of a session: the names of the user, and when it ends, sealed. No token of the provider is in it.
type ticket struct {
	ID     string    `json:"i"`
	Name   string    `json:"n"`
	Groups []string  `json:"g,omitempty"`
	Until  time.Time `json:"u"`
}

// errand is what a browser holds while its user signs in, sealed.
type errand struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	To       string    `json:"t"`
	Until    time.Time `json:"u"`
}

// oidcDoor lets in who has signed in with a provider.
type oidcDoor struct {
	site
	options   OIDC
	seals     *seals
	viewers   *viewers
	lasts     time.Duration // a session
	client    *http.Client  // for the provider
	signedOut *utilcache.LRUExpireCache
	tell      teller
	log       logr.Logger
	now       func() time.Time

	asking   singleflight.Group
	provider atomic.Pointer[oidc.Provider] // nil until it has answered
}

func newOIDCDoor(o OIDC, at site, keys *seals, users *viewers) (*oidcDoor, error) {
	client, err := providerClient(o.CAFile)
	if err != nil {
		return nil, err
	}
	return &oidcDoor{
		site: at, options: o, seals: keys, viewers: users, client: client, signedOut: utilcache.NewLRUExpireCache(maxSignedOut),
		log: ctrl.Log.WithName("dashboard"), now: time.Now,
	}, nil
}

// providerClient returns a client whose answers are bounded.
func providerClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if caFile != "" {
		content, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read the authority of the OIDC provider: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("read the authority of the OIDC provider: %s has no certificates", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: bounded{transport}, Timeout: providerWithin}, nil
}

// bounded cuts answers that are too long, which are not valid then.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

func (d *oidcDoor) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+callbackPath, d.callback)
	mux.HandleFunc("POST "+signOutPath, d.signOut)
	mux.HandleFunc("GET "+signedOutPath, func(w http.ResponseWriter, r *http.Request) {
		d.tell(w, r, http.StatusOK, "You are signed out", errors.New("open any page to sign in again"))
	})
}

// require serves those who have signed in, and sends others to do so if they can be sent.
func (d *oidcDoor) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, err := d.ticket(r)
		switch {
		case err == nil:
			over := func() bool { return d.over(t) }
			next.ServeHTTP(w, during(r, visit{viewer: d.viewers.of(t.Name, t.Groups), until: t.Until, over: over, signedIn: true}))
		case wantsPage(r):
			d.signIn(w, r)
		default:
			w.Header().Set(signInHeader, "/")
			refuse(w, "Your session has ended.")
		}
	})
}

// ticket returns the session of a request.
func (d *oidcDoor) ticket(r *http.Request) (ticket, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return ticket{}, err
	}
	var t ticket
	if err := d.seals.open(sessionCookie, cookie.Value, &t); err != nil {
		return ticket{}, err
	}
	if d.over(t) {
		return ticket{}, errors.New("the session has ended")
	}
	return t, checkIdentity(t.Name, t.Groups)
}

func (d *oidcDoor) over(t ticket) bool {
	_, out := d.signedOut.Get(t.ID)
	return out || !d.now().Before(t.Until)
}

// signIn sends a user to the provider, with a cookie that says where they come from.
func (d *oidcDoor) signIn(w http.ResponseWriter, r *http.Request) {
	config, _, err := d.oauth(r.Context())
	if err != nil {
		d.refuse(w, r, http.StatusBadGateway, "You cannot sign in now", err)
		return
	}
	e := errand{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: returnTo(r), Until: d.now().Add(signInWithin)}
	if err := d.give(w, signInCookie, e, signInWithin); err != nil {
		d.refuse(w, r, http.StatusInternalServerError, "You cannot sign in now", err)
		return
	}
	http.Redirect(w, r, config.AuthCodeURL(e.State, oidc.Nonce(e.Nonce), oauth2.S256ChallengeOption(e.Verifier)), http.StatusFound)
}

// callback lets in who comes back from the provider.
func (d *oidcDoor) callback(w http.ResponseWriter, r *http.Request) {
	var e errand
	cookie, err := r.Cookie(signInCookie)
	if err == nil {
		err = d.seals.open(signInCookie, cookie.Value, &e)
	}
	query := r.URL.Query()
	if err != nil || !same(query.Get("state"), e.State) || !d.now().Before(e.Until) {
		d.refuse(w, r, http.StatusBadRequest, "You are not signed in", fmt.Errorf(
			"this browser did not ask for it, has asked again since, or it has taken more than %s: open any page to sign in", signInWithin))
		return
	}
	drop(w, signInCookie)
	if said := query.Get("error"); said != "" {
		d.refuse(w, r, http.StatusForbidden, "You are not signed in", fmt.Errorf("the provider says: %.100s %.500s", said, query.Get("error_description")))
		return
	}
	t, err := d.redeem(r.Context(), e, query.Get("code"))
	if err != nil {
		d.refuse(w, r, http.StatusForbidden, "You are not signed in", err)
		return
	}
	if err := d.give(w, sessionCookie, t, d.lasts); err != nil {
		d.refuse(w, r, http.StatusForbidden, "You are not signed in", fmt.Errorf("user %q in %d groups: %w", t.Name, len(t.Groups), err))
		return
	}
	d.log.Info("signed in", "user", t.Name, "groups", len(t.Groups))
	http.Redirect(w, r, e.To, http.StatusSeeOther)
}

// maxSaid bounds what of an error is shown and logged: providers are quoted in it.
const maxSaid = 500

// refuse shows why a user is not signed in.
func (d *oidcDoor) refuse(w http.ResponseWriter, r *http.Request, status int, title string, err error) {
	said := excerpt.Of(excerpt.Line(err.Error()), maxSaid)
	d.log.Info("not signed in", "status", status, "reason", said)
	d.tell(w, r, status, title, errors.New(said))
}

// signOut ends a session. A copy of its cookie is worth nothing any more, as long as this process lives.
func (d *oidcDoor) signOut(w http.ResponseWriter, r *http.Request) {
	if t, err := d.ticket(r); err == nil {
		d.log.Info("signed out", "user", t.Name)
		d.signedOut.Add(t.ID, true, t.Until.Sub(d.now()))
	}
	drop(w, sessionCookie)
	http.Redirect(w, r, signedOutPath, http.StatusSeeOther)
}

// give hands a browser a sealed value. SameSite is Lax, for people come back from the provider, and by links; nothing is
// changed by what they open.
func (d *oidcDoor) give(w http.ResponseWriter, name string, value any, lasts time.Duration) error {
	sealed, err := d.seals.seal(name, value)
	if err != nil {
		return err
	}
	if len(sealed) > maxCookie-200 {
		return fmt.Errorf("the names of user and groups do not fit into a cookie (%d of %d bytes): have the provider tell fewer groups to this client", len(sealed), maxCookie-200)
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: sealed, Path: "/", MaxAge: int(lasts.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return nil
}

func drop(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// oauth returns how to talk to the provider. It is asked for its endpoints once it is needed: a dashboard starts without.
func (d *oidcDoor) oauth(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	provider := d.provider.Load()
	if provider == nil {
		_, err, _ := d.asking.Do("", func() (any, error) {
			found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), d.client), d.options.IssuerURL)
			if err == nil {
				d.provider.Store(found)
			}
			return nil, err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("ask OIDC provider %s for its endpoints: %w", d.options.IssuerURL, err)
		}
		provider = d.provider.Load()
	}
	config := &oauth2.Config{
		ClientID: d.options.ClientID, Endpoint: provider.Endpoint(), RedirectURL: d.url.JoinPath(callbackPath).String(),
		Scopes: append([]string{oidc.ScopeOpenID}, d.options.Scopes...),
	}
	if d.options.ClientSecretFile != "" {
		secret, err := os.ReadFile(d.options.ClientSecretFile)
		if err != nil {
			return nil, nil, fmt.Errorf("read the secret of the OIDC client: %w", err)
		}
		config.ClientSecret = strings.TrimSpace(string(secret))
	}
	return config, provider, nil
}
