package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun_refusesWhatCannotWork(t *testing.T) {
	for reason, args := range map[string][]string{
		"unknown flag":                     {"--nope"},
		"an argument":                      {"now"},
		"API servers ask for TLS":          {"--url=http://127.0.0.1:9443"},
		"a chart's configurations go with": {"--unregister-on-exit"},
		"no such file":                     {"--kubeconfig=/does/not/exist"},
	} {
		require.Error(t, run(t.Context(), args), reason)
	}
}

func TestParse_defaults(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, "waybill-system", o.systemNamespace)
	assert.Equal(t, "waybill-webhook", o.service)
	assert.Equal(t, ":9443", o.listen)
}
