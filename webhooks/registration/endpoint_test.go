package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/webhooks/registration"
)

func TestParseURL(t *testing.T) {
	for address, host := range map[string]string{
		"https://webhook.example.com":         "webhook.example.com",
		"https://127.0.0.1:9443":              "127.0.0.1",
		"https://[::1]:9443":                  "::1",
		"https://webhook.example.com:9443/a/": "webhook.example.com",
	} {
		e, err := registration.ParseURL(address)
		require.NoError(t, err, address)
		assert.True(t, e.ByURL())
		assert.Equal(t, []string{host}, e.Hosts(), "the name that clients verify")
		assert.Equal(t, address, e.String())
	}
	for reason, address := range map[string]string{
		"API servers ask for TLS":      "http://webhook.example.com",
		"no host":                      "https:///x",
		"API servers send no password": "https://me:hunter2@webhook.example.com",
		"nor queries":                  "https://webhook.example.com?x=y",
		"no URL":                       "https://web hook",
	} {
		_, err := registration.ParseURL(address)
		require.Error(t, err, reason)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestServiceEndpoint(t *testing.T) {
	e := registration.ServiceEndpoint("waybill-system", "waybill-webhook")
	assert.False(t, e.ByURL())
	assert.Equal(t, "waybill-webhook.waybill-system.svc", e.Hosts()[0], "the name that API servers verify")
	assert.Contains(t, e.String(), "waybill-system/waybill-webhook")
}
