package intake_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks/intake"
)

func TestMain(m *testing.M) { env.Main(m) }

const path = "/validate"

// serve runs a server whose handler is given, and returns its host:port.
func serve(t *testing.T, clients intake.Clients, timeout time.Duration, handler http.HandlerFunc) string {
	t.Helper()
	address := env.Address(t)
	host, name, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(name)
	require.NoError(t, err)
	serving := newCertificate(t, newAuthority(t), host)
	server := intake.NewServer(intake.Options{
		Options: webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }
		}}},
		Clients: clients, Timeout: timeout,
	})
	server.Register(path, handler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, env.Limit, 20*time.Millisecond)
	return address
}

// client is one that speaks HTTP/2, as API servers do, with these certificates.
func client(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post returns the status and the text of the answer.
func post(ctx context.Context, t *testing.T, c *http.Client, address string, body io.Reader) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, body)
	require.NoError(t, err)
	response, err := c.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, strings.TrimSpace(string(text))
}

func TestServer_refusesBeforeAnythingIsDecoded(t *testing.T) {
	address := serve(t, intake.Clients{}, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	for name, tc := range map[string]struct {
		reason string
		body   io.Reader
		code   int
		says   string
	}{
		"normal":    {"it is passed on as it is", strings.NewReader(`{"request": {}}`), http.StatusOK, `{"request": {}}`},
		"nothing":   {"what to say of that is for the handler", http.NoBody, http.StatusOK, ``},
		"large":     {"no API server sends that", bytes.NewReader(make([]byte, 7<<20+1)), http.StatusRequestEntityTooLarge, "the request is larger than 7340032 bytes"},
		"who knows": {"nobody could reserve memory for it", io.MultiReader(strings.NewReader(`{}`)), http.StatusLengthRequired, "the request does not say how large it is"},
		"bomb": {"seven megabytes of groups of a user", strings.NewReader(`{"request": {"userInfo": {"groups": [` + strings.Repeat(`"",`, 2_000_000) + `""]}}}`),
			http.StatusRequestEntityTooLarge, "the request is not decoded: the JSON text contains more than 1500000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := post(t.Context(), t, client(t), address, tc.body)
			assert.Equal(t, tc.code, code, tc.reason)
			assert.Equal(t, tc.says, text, tc.reason)
		})
	}
}

// What is answered at once is bounded by bytes: one large request leaves room for small ones; others
// of its size wait until it is answered, or until no client waits for them any more. On one connection,
// as that of an API server, none of them holds up another.
func TestServer_boundsWhatIsAnsweredAtOnce(t *testing.T) {
	const large = 7 << 20
	begun, goOn := make(chan struct{}, 4), make(chan struct{})
	address := serve(t, intake.Clients{}, 2*time.Second, func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength == large {
			begun <- struct{}{}
			<-goOn
		}
	})
	c := client(t)
	send := func() (code int, text string) {
		return post(t.Context(), t, c, address, bytes.NewReader(bytes.Repeat([]byte(" "), large)))
	}
	var group sync.WaitGroup
	group.Go(func() {
		code, _ := send()
		assert.Equal(t, http.StatusOK, code, "it is answered")
	})
	<-begun
	answers := make(chan string, 2)
	for range cap(answers) {
		group.Go(func() {
			code, text := send()
			assert.Equal(t, http.StatusTooManyRequests, code, "there is no room for what is large")
			answers <- text
		})
	}
	code, _ := post(t.Context(), t, c, address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusOK, code, "there is room for what is small")
	for range cap(answers) {
		assert.Equal(t, intake.ErrBusy.Error(), <-answers)
	}
	close(goOn)
	group.Wait()
	code, _ = send()
	assert.Equal(t, http.StatusOK, code, "what was taken is given back")
}

// What is read at once is bounded, too, and no client waits for that.
func TestServer_boundsWhatIsReadAtOnce(t *testing.T) {
	address := serve(t, intake.Clients{}, time.Minute, func(http.ResponseWriter, *http.Request) {})
	var conns []net.Conn
	for range 3 { // 21 MiB are announced, and do not come
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 7340032\r\n\r\n{")
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Eventually(t, func() bool {
		code, text := post(t.Context(), t, client(t), address, bytes.NewReader(bytes.Repeat([]byte(" "), 1<<20)))
		return code == http.StatusTooManyRequests && text == intake.ErrBusy.Error()
	}, env.Limit, time.Millisecond)
	code, _ := post(t.Context(), t, client(t), address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusOK, code, "there is room for what is small")
	for _, conn := range conns { // no client waits for them for long
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		answer := make([]byte, 64)
		n, err := conn.Read(answer)
		require.NoError(t, err)
		assert.Contains(t, string(answer[:n]), "400 Bad Request")
	}
	code, _ = post(t.Context(), t, client(t), address, bytes.NewReader(bytes.Repeat([]byte(" "), 1<<20)))
	assert.Equal(t, http.StatusOK, code, "what they took is given back")
}

// Connections take memory, too. Who has one keeps it, whatever others do.
func TestServer_boundsConnections(t *testing.T) {
	address := serve(t, intake.Clients{}, time.Minute, func(http.ResponseWriter, *http.Request) {})
	apiServer := client(t)
	code, _ := post(t.Context(), t, apiServer, address, strings.NewReader(`{}`))
	require.Equal(t, http.StatusOK, code)

	var open []net.Conn
	var err error
	for len(open) < 100 {
		conn, dialErr := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err = dialErr; err != nil {
			break
		}
		defer conn.Close()
		open = append(open, conn)
	}
	require.Error(t, err, "one address has too many")
	assert.LessOrEqual(t, len(open), 64)
	code, _ = post(t.Context(), t, apiServer, address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusOK, code)

	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, env.Limit, 20*time.Millisecond, "what is closed counts no more")
}

// Where API servers have a client certificate, no other client is answered.
func TestServer_asksForAClientCertificate(t *testing.T) {
	authority, another := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	authority.write(t, file)
	var answered int
	address := serve(t, intake.Clients{CAFile: file, Names: []string{"kube-apiserver"}}, time.Minute, func(http.ResponseWriter, *http.Request) { answered++ })

	code, _ := post(t.Context(), t, client(t, newCertificate(t, authority, "kube-apiserver")), address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusOK, code)
	code, text := post(t.Context(), t, client(t, newCertificate(t, authority, "kubelet")), address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusForbidden, code, "another of the same authority")
	assert.Equal(t, `the client certificate is for "kubelet", which may not call this webhook`, text)
	code, text = post(t.Context(), t, client(t), address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusForbidden, code, "a user of the cluster")
	assert.Contains(t, text, "a client certificate is required")
	_, err := client(t, newCertificate(t, another, "kube-apiserver")).Post("https://"+address+path, "application/json", strings.NewReader(`{}`))
	require.Error(t, err, "any user can make a certificate of that name")

	another.write(t, file)
	code, _ = post(t.Context(), t, client(t, newCertificate(t, another, "kube-apiserver")), address, strings.NewReader(`{}`))
	assert.Equal(t, http.StatusOK, code, "the authority is replaced without a restart")
	assert.Equal(t, 2, answered)
}

func TestClients_check(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	for reason, tc := range map[string]struct {
		clients intake.Clients
		says    string
	}{
		"anybody":                {intake.Clients{}, ""},
		"names of nobody":        {intake.Clients{Names: []string{"a"}}, "need the file of the authority"},
		"no file":                {intake.Clients{CAFile: file}, "read client CA: open"},
		"a file of other things": {intake.Clients{CAFile: "server_test.go"}, "contains no PEM certificate"},
	} {
		err := tc.clients.Check()
		if tc.says == "" {
			assert.NoError(t, err, reason)
			continue
		}
		assert.ErrorContains(t, err, tc.says, reason)
	}
}
