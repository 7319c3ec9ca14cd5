package env_test

import (
	"os"
	"testing"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) {
	role := os.Getenv(victimVariable)
	if role == "" {
		env.Main(m)
	}
	env.StopOnSignal()
	victim(role)
	env.StopAll()
}
