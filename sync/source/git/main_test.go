package git_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	"waybill.dev/waybill/sync/source/git"
)

// crashDir and crashURL make the test binary fetch into a directory and then
// wait to be killed.
const (
	crashDir = "WAYBILL_TEST_CRASH_DIR"
	crashURL = "WAYBILL_TEST_CRASH_URL"
	crashCA  = "WAYBILL_TEST_CRASH_CA"
)

func TestMain(m *testing.M) {
	// The test servers log every request.
	log.SetOutput(io.Discard)
	if dir := os.Getenv(crashDir); dir != "" {
		if err := fetchUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fetchUntilKilled(dir string) error {
	ctx := context.Background()
	store, err := git.NewStore(dir)
	if err != nil {
		return err
	}
	repo := git.Repository{URL: os.Getenv(crashURL), Credentials: git.Credentials{CAFile: []byte(os.Getenv(crashCA))}}
	rev, err := store.Resolve(ctx, repo, git.Ref{})
	if err != nil {
		return err
	}
	_, err = store.Open(ctx, repo, rev)
	return err
}
