package env_test

import (
	"testing"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }
