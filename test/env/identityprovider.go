package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The client that an IdentityProvider knows.
const (
	IdentityClientID     = "waybill"
	IdentityClientSecret = "of the client"
)

// IdentityProvider is an OIDC provider at which every user signs in as its claims say, without being asked.
type IdentityProvider struct {
	httpServer
	signer jose.Signer
	public jose.JSONWebKeySet

	mu       sync.Mutex
	claims   map[string]any // also override those of the protocol
	refuses  string
	codes    map[string]url.Values
	signedIn int
}

// StartIdentityProvider starts a provider, with a certificate of the authority that CA returns.
func StartIdentityProvider() (*IdentityProvider, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("start identity provider: %w", err)
	}
	web := jose.JSONWebKey{Key: key, KeyID: "a", Algorithm: string(jose.ES256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: web}, nil)
	if err != nil {
		return nil, fmt.Errorf("start identity provider: %w", err)
	}
	p := &IdentityProvider{signer: signer, public: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{web.Public()}}, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { p.write(w, p.public) })
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	if err := p.serve(Access{TLS: true}, mux); err != nil {
		return nil, fmt.Errorf("start identity provider: %w", err)
	}
	return p, nil
}

// URL returns the issuer.
func (p *IdentityProvider) URL() string { return p.url() }

// As has every user sign in with these claims from now on.
func (p *IdentityProvider) As(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// Refuse lets no user sign in from now on, for a reason; empty to let every user sign in again.
func (p *IdentityProvider) Refuse(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = reason
}

// SignedIn returns how many have signed in.
func (p *IdentityProvider) SignedIn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signedIn
}

func (p *IdentityProvider) describe(w http.ResponseWriter, _ *http.Request) {
	at := p.url()
	p.write(w, map[string]any{
		"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "jwks_uri": at + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
	})
}

func (p *IdentityProvider) write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the test sees what is missing
}

func (p *IdentityProvider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := r.URL.Query()
	if query.Get("response_type") != "code" || query.Get("client_id") != IdentityClientID || query.Get("code_challenge_method") != "S256" ||
		query.Get("state") == "" || query.Get("nonce") == "" {
		http.Error(w, "not asked for as it should be: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {query.Get("state")}}
	if p.refuses != "" {
		answer.Set("error", p.refuses)
	} else {
		code := rand.Text()
		p.codes[code] = query
		answer.Set("code", code)
	}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (p *IdentityProvider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	asked, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !known || id != IdentityClientID || secret != url.QueryEscape(IdentityClientSecret) || r.FormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		p.write(w, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": p.url(), "aud": IdentityClientID, "sub": "nobody", "nonce": asked.Get("nonce"),
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range p.claims {
		claims[name] = value
	}
	content, _ := json.Marshal(claims) // they are what the test gave
	signed, err := p.signer.Sign(content)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	raw, _ := signed.CompactSerialize() // it is signed
	p.signedIn++
	p.write(w, map[string]any{"access_token": "secret-access", "refresh_token": "secret-refresh", "token_type": "Bearer", "id_token": raw})
}
