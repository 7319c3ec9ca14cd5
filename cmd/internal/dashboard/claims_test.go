package dashboard

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

// With the values of the API server's flags, people have the names that the API server has for them.
func TestOIDC_identityIsThatOfTheAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		o      OIDC
		claims string
		user   string
		groups []string
		says   string
	}{
		"Default":       {"two issuers can have one name", OIDC{UsernameClaim: "sub"}, `{"sub": "7"}`, "https://id.example.com#7", nil, ""},
		"Email":         {"an address is of one person", OIDC{UsernameClaim: "email"}, `{"email": "a@b.c", "email_verified": true}`, "a@b.c", nil, ""},
		"NotVerified":   {"users can claim any address", OIDC{UsernameClaim: "email"}, `{"email": "a@b.c", "email_verified": false}`, "", nil, "has not verified"},
		"VerifiedText":  {"not the word of the specification", OIDC{UsernameClaim: "email"}, `{"email": "a@b.c", "email_verified": "true"}`, "", nil, "has not verified"},
		"NotSaid":       {"not all providers do", OIDC{UsernameClaim: "email"}, `{"email": "a@b.c"}`, "a@b.c", nil, ""},
		"NoPrefix":      {"asked for", OIDC{UsernameClaim: "sub", UsernamePrefix: "-"}, `{"sub": "7"}`, "7", nil, ""},
		"Prefixes":      {"asked for", OIDC{UsernameClaim: "sub", UsernamePrefix: "oidc:", GroupsClaim: "roles", GroupsPrefix: "oidc:"}, `{"sub": "7", "roles": ["a", "b"]}`, "oidc:7", []string{"oidc:a", "oidc:b"}, ""},
		"OneGroup":      {"a text is one", OIDC{UsernameClaim: "sub", UsernamePrefix: "-", GroupsClaim: "role"}, `{"sub": "7", "role": "a"}`, "7", []string{"a"}, ""},
		"NoGroups":      {"they are not said", OIDC{UsernameClaim: "sub", UsernamePrefix: "-", GroupsClaim: "groups"}, `{"sub": "7"}`, "7", nil, ""},
		"NotAskedFor":   {"they count for nothing", OIDC{UsernameClaim: "sub", UsernamePrefix: "-"}, `{"sub": "7", "groups": ["a"]}`, "7", nil, ""},
		"NoName":        {"the claim is missing", OIDC{UsernameClaim: "email"}, `{"sub": "7"}`, "", nil, "no claim email"},
		"GroupsOfThree": {"not names", OIDC{UsernameClaim: "sub", GroupsClaim: "groups"}, `{"sub": "7", "groups": [1, 2, 3]}`, "", nil, "neither a text nor a list"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.IssuerURL = "https://id.example.com"
			user, groups, err := tc.o.identity(func(into any) error { return json.Unmarshal([]byte(tc.claims), into) })
			if tc.says != "" {
				assert.ErrorContains(t, err, tc.says, tc.reason)
				return
			}
			assert.NoError(t, err, tc.reason)
			assert.Equal(t, tc.user, user, tc.reason)
			assert.Equal(t, tc.groups, groups, tc.reason)
		})
	}
}

// A dashboard answers to its address, and to no other that leads to it.
func TestSite_host(t *testing.T) {
	s, err := newSite("https://Waybill.example.com/")
	assert.NoError(t, err)
	for host, want := range map[string]bool{
		"waybill.example.com": true, "WAYBILL.example.com:443": true, "waybill.example.com:8443": false, "evil.example": false, "": false,
		"waybill.example.com.evil.example": false, "waybill.example.com.": false,
	} {
		assert.Equal(t, want, s.host(host), host)
	}
	for _, wrong := range []string{"", "waybill.example.com", "http://a", "https://a/b", "https://a?b", "https://a#b", "https://u@a", "https://"} {
		_, err := newSite(wrong)
		assert.Error(t, err, wrong)
	}
}
