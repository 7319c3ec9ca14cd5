package dashboard

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Proxy says which authenticating proxy is believed who a user is. It means what the flags of kube-apiserver do that begin
// with requestheader.
type Proxy struct {
	// ClientCAFile has the certificates of the authority that signs the proxy's client certificate.
	ClientCAFile string
	// AllowedNames are common names of which that certificate has to have one; empty for any.
	AllowedNames []string
	// UsernameHeaders and GroupHeaders have the name of the user, and of each of their groups.
	UsernameHeaders, GroupHeaders []string
}

// proxyDoor lets in whom a proxy vouches for.
type proxyDoor struct {
	site
	viewers *viewers
	ca      *dynamiccertificates.DynamicFileCAContent
	request authenticator.Request
}

func newProxyDoor(o Proxy, at site, users *viewers) (*proxyDoor, error) {
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("proxy", o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the proxy's client certificate: %w", err)
	}
	static := func(names []string) headerrequest.StaticStringSlice { return names }
	return &proxyDoor{site: at, viewers: users, ca: ca, request: headerrequest.NewDynamicVerifyOptionsSecure(
		ca.VerifyOptions, static(o.AllowedNames), static(o.UsernameHeaders), static(nil), static(o.GroupHeaders), static(nil),
	)}, nil
}

// run follows changes of the authority's file until ctx ends.
func (d *proxyDoor) run(ctx context.Context) error {
	d.ca.Run(ctx, 1)
	return nil
}

func (d *proxyDoor) routes(*http.ServeMux) {}

// require serves requests that come from the proxy and name a user.
func (d *proxyDoor) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, ok, err := d.request.AuthenticateRequest(r)
		switch {
		case err != nil:
			refuse(w, "The dashboard answers to its authenticating proxy only: the client certificate is not valid, or not that of the proxy.")
			return
		case !ok:
			refuse(w, "The authenticating proxy has sent no client certificate, or no name of a user.")
			return
		}
		if err := checkIdentity(said.User.GetName(), said.User.GetGroups()); err != nil {
			http.Error(w, "You are not let in: "+err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, during(r, visit{viewer: d.viewers.of(said.User.GetName(), said.User.GetGroups()), vouched: true}))
	})
}
