package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// stream opens the stream of a page, and returns its events once it is connected: change, bye, and partial and version with what they say.
func (b *browser) stream(query url.Values) (events <-chan string, end func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address+"/live?"+query.Encode(), nil)
	require.NoError(b.t, err)
	response, err := b.Do(request)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	require.Equal(b.t, http.StatusOK, response.StatusCode)
	require.Equal(b.t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	require.True(b.t, lines.Scan(), "it is connected")
	found := make(chan string, 100)
	go func() {
		for lines.Scan() {
			if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				if lines.Scan(); event == "partial" || event == "version" {
					event += lines.Text()
				}
				found <- event
			}
		}
		close(found)
	}()
	return found, cancel
}

// K68: a page is notified when what it shows has changed, and only then.
func TestLive_tellsWhatHasChanged(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	k := cluster(ns, "berlin")
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	c := create(t, api, k, installation)
	b := open(t, api.RESTConfig(), ns)
	label := func(object client.Object, value string) {
		t.Helper()
		before := object.DeepCopyObject().(client.Object)
		object.SetLabels(map[string]string{"changed": value})
		require.NoError(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
	}
	one := v1alpha1.KubernetesClusterKind + "/" + ns + "/berlin"
	assert.Contains(t, b.get(objectLink("", "", "kubernetesclusters", ns, "berlin")).body, `data-kinds="`+one+`"`)
	page, endPage := b.stream(url.Values{"kind": {one}})
	clusters, end := b.stream(url.Values{"kind": {v1alpha1.KubernetesClusterKind}})
	object, _ := b.stream(url.Values{"object": {objectLink("", "", "applicationinstallations", ns, "web")}})
	assert.Equal(t, "change", <-object, "it is read for the first time")

	label(installation, "1")
	assert.Equal(t, "change", <-object)
	assert.Empty(t, clusters, "its page is not about installations")
	label(k, "1")
	assert.Equal(t, "change", <-clusters)
	assert.Equal(t, "change", <-page)
	endPage()

	end()
	require.Eventually(t, func() bool {
		b.server.inventory.feed.mu.Lock()
		defer b.server.inventory.feed.mu.Unlock()
		return len(b.server.inventory.feed.streams) == 1
	}, limit, often, "a tab that is closed costs nothing")
}

// K68: who may get an object and not watch it is told that its page is not followed.
func TestLive_saysWhatIsNotFollowed(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	create(t, api, installation)
	config, err := api.AddUser("gets-" + ns)
	require.NoError(t, err)
	allow(t, api, ns, "gets-"+ns, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationinstallations"}, Verbs: []string{"get"}})
	b := open(t, config, ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	require.Equal(t, http.StatusOK, b.get(page).status)
	events, _ := b.stream(url.Values{"object": {page}})
	for text, told := "", false; !told; {
		select {
		case event := <-events:
			text, told = strings.CutPrefix(event, "partial")
		case <-time.After(limit):
			t.Fatal("it says nothing")
		}
		if told {
			assert.Contains(t, text, "You may not watch applicationinstallations.apps.waybill.dev web in namespace "+ns+" of hub. Changes are shown when you reload the page.")
		}
	}
}

// Tabs that are open cost no more than there is.
func TestFeed_isBounded(t *testing.T) {
	f := newFeed()
	one := &viewer{}
	var last func()
	for range maxStreamsEach {
		_, end, err := f.subscribe(one, []string{"A"})
		require.NoError(t, err)
		last = end
	}
	_, _, err := f.subscribe(one, []string{"A"})
	require.ErrorIs(t, err, errTooMany, "one user has no more")
	_, _, err = f.subscribe(&viewer{name: "other"}, []string{"A"})
	require.NoError(t, err, "others do")
	last()
	to, end, err := f.subscribe(one, []string{"A"})
	require.NoError(t, err)
	f.tell("A", "x", "one")
	f.tell("A", "x", "one") // the first was not read yet: it does not block
	f.tell("B", "x", "one")
	assert.Len(t, to.woken, 1)
	assert.Equal(t, map[touch]bool{{"A", "x"}: true}, to.take())
	for i := range 2 * maxTouched {
		f.tell("A", fmt.Sprint(i), "one")
	}
	touched := to.take()
	assert.LessOrEqual(t, len(touched), maxTouched)
	assert.True(t, touched[touch{}], "what was dropped may concern any viewer")
	end()
	for len(f.streams) < maxStreams {
		_, _, err = f.subscribe(&viewer{name: fmt.Sprint(len(f.streams))}, nil)
		require.NoError(t, err)
	}
	_, _, err = f.subscribe(&viewer{name: "another"}, nil)
	require.ErrorIs(t, err, errTooMany)
}

// K68: the page of one object is not fetched again for the others of its kind.
func TestFeed_oneObject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason          string
		about           string
		namespace, name string
		woken           int
	}{
		"Itself":         {"it has changed", "A/x/one", "x", "one", 1},
		"Other":          {"it is not on the page", "A/x/one", "x", "two", 0},
		"OtherNamespace": {"it has the same name", "A/x/one", "y", "one", 0},
		"NoNamespace":    {"its kind has none", "A//one", "", "one", 1},
		"State":          {"the page says whether the kind is watched", "A/x/one", "", "", 1},
		"List":           {"it has all", "A", "x", "two", 1},
	} {
		f := newFeed()
		to, _, err := f.subscribe(&viewer{}, []string{tc.about})
		require.NoError(t, err)
		f.tell("A", tc.namespace, tc.name)
		assert.Len(t, to.woken, tc.woken, "%s: %s", name, tc.reason)
	}
}

// What changes between a page and its stream is told at once, also by a process that has begun since.
func TestFeed_catchesUp(t *testing.T) {
	f := newFeed()
	seen := f.now()
	subscribed := func(kinds ...string) *stream {
		to, _, err := f.subscribe(&viewer{}, kinds)
		require.NoError(t, err)
		return to
	}
	same := subscribed("A")
	f.catchUp(same, seen)
	assert.Empty(t, same.woken, "nothing has changed")
	f.tell("A", "x", "one")
	for name, tc := range map[string]struct {
		kinds []string
		seen  uint64
		woken int
	}{
		"Changed":        {[]string{"A", "B"}, seen, 1},
		"OtherKind":      {[]string{"B"}, seen, 0},
		"Seen":           {[]string{"A"}, f.now(), 0},
		"ProcessBefore":  {[]string{"B"}, seen - 1000, 1},
		"NothingToCatch": {nil, 0, 0},
	} {
		to := subscribed(tc.kinds...)
		f.catchUp(to, tc.seen)
		assert.Len(t, to.woken, tc.woken, name)
	}
}
