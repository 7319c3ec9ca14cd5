package integration_test

import (
	"testing"
	"time"

	"waybill.dev/waybill/test/env"
)

// How long a test waits for what happens by itself, and how often it looks.
const (
	limit = env.Limit
	often = 50 * time.Millisecond
)

func TestMain(m *testing.M) { env.Main(m) }
