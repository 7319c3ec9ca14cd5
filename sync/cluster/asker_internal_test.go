package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// C38: credentials of the same user may take the place of others.
func TestSameUser(t *testing.T) {
	with := func(change func(*authenticationv1.UserInfo)) authenticationv1.UserInfo {
		u := authenticationv1.UserInfo{
			Username: "hub", UID: "1", Groups: []string{"a", "b"},
			Extra: map[string]authenticationv1.ExtraValue{"scopes": {"x", "y"}, credentialID: {"JTI=1"}},
		}
		change(&u)
		return u
	}
	cases := map[string]struct {
		reason string
		change func(*authenticationv1.UserInfo)
		same   bool
	}{
		"Credential":   {"each token has an id of its own", func(u *authenticationv1.UserInfo) { u.Extra[credentialID] = []string{"JTI=2"} }, true},
		"NoCredential": {"a certificate may have none", func(u *authenticationv1.UserInfo) { delete(u.Extra, credentialID) }, true},
		"GroupOrder":   {"groups are a set", func(u *authenticationv1.UserInfo) { u.Groups = []string{"b", "a", "b"} }, true},
		"Name":         {"rights are bound to it", func(u *authenticationv1.UserInfo) { u.Username = "other" }, false},
		"UID":          {"it was deleted and created again", func(u *authenticationv1.UserInfo) { u.UID = "2" }, false},
		"Groups":       {"rights are bound to them", func(u *authenticationv1.UserInfo) { u.Groups = []string{"a"} }, false},
		"Extra":        {"an authorizer may look at it", func(u *authenticationv1.UserInfo) { u.Extra["scopes"] = []string{"x"} }, false},
		"MoreExtra":    {"an authorizer may look at it", func(u *authenticationv1.UserInfo) { u.Extra["pod"] = []string{"p"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.same, sameUser(with(func(*authenticationv1.UserInfo) {}), with(tc.change)), tc.reason)
		})
	}
}
