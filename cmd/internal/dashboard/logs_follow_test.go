package dashboard

import (
	"bufio"
	"context"
	"crypto/tls"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/test/env"
)

// writing creates a Pod in a namespace of a cluster, and returns its log and the address of the page that shows it.
func writing(t *testing.T, api *env.Cluster, ns string) (log *env.PodLogs, page string) {
	t.Helper()
	log, err := api.ServePodLogs(t.Context(), "node-of-"+ns)
	require.NoError(t, err)
	t.Cleanup(log.Stop)
	runs(t, create(t, api), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "node-of-" + ns, Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	})
	return log, logsLink(types.NamespacedName{}, ns, "web")
}

var followLink = regexp.MustCompile(`data-follow="([^"]+)"`)

// followOf returns what a page of a log follows it by.
func followOf(t *testing.T, page answer) string {
	t.Helper()
	require.Equal(t, http.StatusOK, page.status, page.body)
	found := followLink.FindStringSubmatch(page.body)
	require.NotNil(t, found, page.body)
	return strings.ReplaceAll(found[1], "&amp;", "&")
}

// follow opens the stream of a log, and returns its lines, with bye for the end of a stream that is opened again, and the times of lines.
func (b *browser) follow(path string, change ...func(*http.Request)) (lines, times <-chan string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address+path, nil)
	require.NoError(b.t, err)
	for _, f := range change {
		f(request)
	}
	response, err := b.Do(request)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	found, stamps := make(chan string, 100), make(chan string, 100)
	go func() {
		defer close(found)
		for text := bufio.NewScanner(response.Body); text.Scan(); {
			if line, ok := strings.CutPrefix(text.Text(), "data: "); ok && line != "{}" {
				found <- line
			}
			if id, ok := strings.CutPrefix(text.Text(), "id: "); ok {
				stamps <- id
			}
			if text.Text() == "event: bye" {
				found <- "bye"
			}
		}
	}()
	return found, stamps
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(limit):
		require.Fail(t, "nothing comes")
		return ""
	}
}

// Each line of a log is seen once: those that the page has, those that are written before it is followed, and those after it.
func TestFollowLogs_missesNothing(t *testing.T) {
	api := hub(t)
	for name, tc := range map[string]struct {
		reason string
		has    []string
	}{
		"Lines":   {"what the page has is not sent again", []string{"one", "two"}},
		"Nothing": {"all is new", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ns := api.Namespace(t)
			log, path := writing(t, api, ns)
			for _, line := range tc.has {
				log.Write(line)
			}
			b := open(t, api.RESTConfig(), ns)
			page := b.get(path)
			assert.Contains(t, page.body, ">"+strings.Join(append(tc.has, "</pre>"), "\n"), "without times")
			log.Write("meanwhile")
			lines, times := b.follow(followOf(t, page))
			assert.Equal(t, "meanwhile", next(t, lines), tc.reason)
			log.Write("afterwards")
			assert.Equal(t, "afterwards", next(t, lines))
			seen := next(t, times)
			again, _ := b.follow(path + "/follow?container=main&since=" + seen)
			assert.Equal(t, "afterwards", next(t, again), "a tab that was hidden goes on after the line that it has seen")
		})
	}
}

// A stream of a log ends when only a proxy knows whether the session goes on: the browser has to ask again, and loses no line.
func TestFollowLogs_proxyIsAskedAgain(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	user := "logs-" + ns
	allow(t, api, ns, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get"}})
	log, path := writing(t, api, ns)
	proxies := newAuthority(t)
	s := startShared(t, account(t, api), &Options{HubName: "hub", Proxy: &Proxy{
		ClientCAFile: write(t, proxies.pem()), UsernameHeaders: []string{"X-Remote-User"}, GroupHeaders: []string{"X-Remote-Group"},
	}})
	s.server.pace.vouched = 100 * time.Millisecond
	b := s.browser([]tls.Certificate{proxies.client(t, "front")}...)
	as := func(r *http.Request) { r.Header.Set("X-Remote-User", user) }
	log.Write("before")
	lines, _ := b.follow(followOf(t, b.page(path, as)), as)
	assert.Equal(t, "bye", next(t, lines), "the container goes on, and writes nothing")
	log.Write("meanwhile")
	lines, _ = b.follow(followOf(t, b.page(path, as)), as)
	_, more := <-lines
	assert.True(t, more)
	assert.Equal(t, http.StatusUnauthorized, b.get(path+"/follow?container=main").status, "the session at the proxy has ended")
}
