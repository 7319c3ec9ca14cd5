package registration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"waybill.dev/waybill/webhooks/certificate"
)

const settle = 5 * time.Second

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func authority(t *testing.T) *certificate.Authority {
	t.Helper()
	a, err := certificate.NewAuthority(start, time.Hour)
	require.NoError(t, err)
	return a
}

func registeredWith(authorities ...*certificate.Authority) state {
	var bundle []byte
	for _, a := range authorities {
		bundle = append(bundle, a.PEM()...)
	}
	return state{validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
		},
	}}
}

// Nothing is signed with an authority before every API server had time to learn of it.
func TestSigner(t *testing.T) {
	old, current, lost := authority(t), authority(t), authority(t)
	leafOf := func(a *certificate.Authority) *certificate.Leaf {
		leaf, err := a.Issue(start, "localhost")
		require.NoError(t, err)
		return leaf
	}
	rotated := certificate.Keyring{Current: current, Previous: old}
	for name, tc := range map[string]struct {
		reason     string
		keyring    certificate.Keyring
		leaf       *certificate.Leaf
		registered state
		after      time.Duration // since it is registered so
		want       *certificate.Authority
	}{
		"first":            {"nobody has to be convinced", certificate.Keyring{Current: current}, nil, state{}, 0, current},
		"not registered":   {"the one before is still believed", rotated, leafOf(old), registeredWith(old), time.Minute, old},
		"just registered":  {"API servers learn of it one after the other", rotated, leafOf(old), registeredWith(current, old), settle - 1, old},
		"settled":          {"everybody knows", rotated, leafOf(old), registeredWith(current, old), settle, current},
		"new process":      {"it has no certificate yet, and others must believe it", rotated, nil, registeredWith(current, old), 0, old},
		"moved already":    {"there is no way back", rotated, leafOf(current), registeredWith(old), 0, current},
		"lost Secret":      {"the authority is in no keyring any more, and believed", certificate.Keyring{Current: current}, leafOf(lost), registeredWith(lost), time.Minute, lost},
		"ended meanwhile":  {"nobody believes what has ended", rotated, leafOf(lost), registeredWith(lost), 2 * time.Hour, current},
		"other bundles":    {"two that differ are none", rotated, leafOf(old), differing(current, old), time.Minute, old},
		"nothing to fill":  {"an empty configuration asks nobody", rotated, leafOf(old), state{}, settle, current},
		"previous is over": {"better the new one than none", certificate.Keyring{Current: current, Previous: old}, nil, registeredWith(old), 2 * time.Hour, current},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Registrar{options: Options{Settle: settle}}
			r.trust.see(start, tc.keyring.Current, tc.registered)
			r.trust.see(start.Add(tc.after), tc.keyring.Current, tc.registered)
			got := r.signer(start.Add(tc.after), tc.keyring, tc.leaf)
			assert.Equal(t, string(tc.want.PEM()), string(got.PEM()), tc.reason)
		})
	}
}

func differing(a, b *certificate.Authority) state {
	s := registeredWith(a)
	s.validating.Webhooks[1].ClientConfig.CABundle = b.PEM()
	return s
}

func TestState_names(t *testing.T) {
	hooks := Hooks{
		Mutating:   []Hook{{Resource: "as", Path: "/default/as"}},
		Validating: []Hook{{Resource: "as", Path: "/validate/as"}, {Resource: "bs", Path: "/validate/bs"}},
	}
	ours, err := ParseURL("https://127.0.0.1:1")
	require.NoError(t, err)
	theirs, err := ParseURL("https://127.0.0.1:2")
	require.NoError(t, err)
	filled := state{
		mutating:   &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: hooks.mutating(ours, []byte("x"), nil, 0)},
		validating: &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: hooks.validating(ours, []byte("x"))},
	}
	assert.True(t, filled.names(ours, hooks))
	assert.False(t, filled.names(theirs, hooks), "another process")
	assert.True(t, filled.mentions(ours, hooks))
	assert.False(t, filled.mentions(theirs, hooks))
	assert.Equal(t, "x", string(filled.bundle()))

	filled.validating.Webhooks = filled.validating.Webhooks[:1]
	assert.False(t, filled.names(ours, hooks), "one is missing")
	assert.True(t, filled.mentions(ours, hooks), "and would still be asked")
	assert.False(t, state{}.names(ours, hooks))
	assert.False(t, state{}.mentions(ours, hooks))
}
