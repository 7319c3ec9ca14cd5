package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// P6-P9, P11, P12, P14, C28, C45: the demo is the first thing that users run.
func TestDemo_playsToTheEnd(t *testing.T) { play(t, story(), true) }

// K28, K32, C29, C47: the same programs, with a seed between the hub and the clusters.
func TestDemo_playsThroughASeed(t *testing.T) { play(t, seedStory(), false) }

// play plays a story. With keep it then opens the dashboard, whose address is printed, and has everything stop.
func play(t *testing.T, chapters []chapter, keep bool) {
	t.Helper()
	t.Cleanup(env.StopAll)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &output{dashboard: make(chan string, 1)}
	opened := make(chan string, 1)
	go func() {
		defer stop()
		select {
		case at := <-out.dashboard:
			opened <- visit(ctx, at)
		case <-t.Context().Done():
		}
	}()
	err := run(ctx, out, chapters, keep)
	require.NoError(t, err, "%s", out.String())
	if keep {
		assert.Contains(t, <-opened, `/catalog">Catalog</a>`, "the address that was printed opens the dashboard")
	}
	assert.NotContains(t, out.String(), "\x1b[", "no escape codes where there is no terminal")
	for _, c := range chapters {
		for _, s := range c.steps {
			assert.Contains(t, out.String(), s.title)
		}
	}
}

// said is the address of the dashboard, or what is printed where there is none.
var said = regexp.MustCompile(login.String() + "|not there|The kubeconfigs by themselves")

// output is what the demo prints.
type output struct {
	dashboard chan string // gets what is said of the dashboard

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if at := said.Find(o.text.Bytes()); at != nil && !o.told {
		o.told = true
		o.dashboard <- string(at)
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// visit opens an address as a browser does, and returns the page that it leads to, or why there is none.
func visit(ctx context.Context, address string) string {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Sec-Fetch-Site", "none")
	response, err := (&http.Client{Jar: jar}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(page)
}
