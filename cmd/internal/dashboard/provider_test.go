package dashboard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

const (
	clientID     = "waybill"
	clientSecret = "of the client"
)

// provider is an OIDC provider at which everybody signs in as the claims say, without being asked.
type provider struct {
	*httptest.Server
	signer jose.Signer
	public jose.JSONWebKeySet

	mu       sync.Mutex
	claims   map[string]any // also override those of the protocol
	refuses  string         // the error in place of a code
	codes    map[string]url.Values
	signedIn int
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	web := jose.JSONWebKey{Key: key, KeyID: "a", Algorithm: string(jose.ES256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: web}, nil)
	require.NoError(t, err)
	p := &provider{signer: signer, public: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{web.Public()}}, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { p.write(w, p.public) })
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the test sees what is missing
}

// as has everybody sign in with these claims.
func (p *provider) as(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := r.URL.Query()
	if query.Get("response_type") != "code" || query.Get("client_id") != clientID || query.Get("code_challenge_method") != "S256" ||
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

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	asked, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !known || id != clientID || secret != url.QueryEscape(clientSecret) || r.FormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		p.write(w, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": clientID, "sub": "nobody", "nonce": asked.Get("nonce"),
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
