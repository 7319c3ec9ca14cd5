package dashboard

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"waybill.dev/waybill/cmd/internal/cli"
)

// started is `waybill dashboard` with a browser that only notes what it is to open.
type started struct {
	printed string // the address
	opened  string // the arguments of the opener
	stop    func()
}

// runCommand starts the command, and returns when its browser was opened.
func runCommand(t *testing.T) started {
	t.Helper()
	path := t.TempDir()
	noted := filepath.Join(path, "noted")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + noted + ".new && mv " + noted + ".new " + noted + "\n"
	for _, name := range []string{"xdg-open", "open"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, in := io.Pipe()
	env := cli.NewEnv(genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, "test")
	cmd := New(env)
	env.AddFlags(cmd.Flags())
	cmd.SetArgs([]string{"--kubeconfig", hub(t).KubeconfigFile()})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	stop := func() {
		cancel()
		require.NoError(t, <-ended)
		ended <- nil
	}
	t.Cleanup(stop)
	line := make([]byte, 1000)
	n, err := out.Read(line)
	require.NoError(t, err)
	var opened []byte
	require.Eventually(t, func() bool {
		opened, err = os.ReadFile(noted)
		return err == nil
	}, limit, often)
	return started{regexp.MustCompile(`http://\S+`).FindString(string(line[:n])), strings.TrimSpace(string(opened)), stop}
}

// The arguments of programs are to be seen by all users of a machine: the address with its token is in a file of the user alone,
// which is there no longer than the token is good.
func TestCommand_opensTheBrowserWithoutTellingTheToken(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(r started)
	}{
		"Redeemed": {"the browser was let in", func(r started) {
			response, err := http.Get(r.printed)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusOK, response.StatusCode)
		}},
		"Interrupted": {"no browser came", func(r started) { r.stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCommand(t)
			_, token, has := strings.Cut(r.printed, "token=")
			require.True(t, has, "the terminal has the whole address: %s", r.printed)
			assert.NotContains(t, r.opened, token)
			assert.NotContains(t, r.opened, "http")
			for file, mode := range map[string]os.FileMode{r.opened: 0o600, filepath.Dir(r.opened): 0o700 | os.ModeDir} {
				info, err := os.Stat(file)
				require.NoError(t, err)
				assert.Equal(t, mode, info.Mode(), file)
			}
			content, err := os.ReadFile(r.opened)
			require.NoError(t, err)
			assert.Contains(t, string(content), `content="0; url=`+r.printed+`"`)
			assert.Contains(t, string(content), `href="`+r.printed+`"`)

			tc.end(r)
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Dir(r.opened))
				return os.IsNotExist(err)
			}, limit, often, tc.reason)
		})
	}
}
