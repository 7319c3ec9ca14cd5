package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// P6-P9, P11, P12, P14, C28, C45: the demo is the first thing that users run.
func TestDemo_playsToTheEnd(t *testing.T) { play(t, story()) }

// K28, K32, C29, C47: the same programs, with a seed between the hub and the clusters.
func TestDemo_playsThroughASeed(t *testing.T) { play(t, seedStory()) }

func play(t *testing.T, chapters []chapter) {
	t.Helper()
	t.Cleanup(env.StopAll)
	var out bytes.Buffer
	err := run(t.Context(), &out, chapters, false)
	require.NoError(t, err, "%s", out.String())
	assert.NotContains(t, out.String(), "\x1b[", "no escape codes where there is no terminal")
	for _, c := range chapters {
		for _, s := range c.steps {
			assert.Contains(t, out.String(), s.title)
		}
	}
}
