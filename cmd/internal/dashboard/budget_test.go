package dashboard

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"waybill.dev/waybill/api/v1alpha1"
)

// Requests that read clusters are bounded: of one user, so that others are served, and of all.
func TestBudget_request(t *testing.T) {
	type step struct {
		user  string
		after time.Duration
		// ends says that the request is answered at once; else it is under way to the end.
		ends bool
		// again is when the user may ask again; zero if they are served.
		again time.Duration
	}
	ample := share{perSecond: 1000, burst: 1000, atATime: 1000}
	for reason, tc := range map[string]struct {
		each, all share
		steps     []step
	}{
		"as many at once as may be, then as many as come back": {share{1, 2, 9}, ample, []step{
			{"jane", 0, true, 0}, {"jane", 0, true, 0}, {"jane", 0, true, time.Second}, {"jane", time.Second / 2, true, time.Second / 2}, {"jane", time.Second / 2, true, 0},
		}},
		"one user takes nothing from another": {share{1, 1, 9}, ample, []step{{"jane", 0, true, 0}, {"jane", 0, true, time.Second}, {"john", 0, true, 0}}},
		"all together":                        {share{1, 9, 9}, share{1, 2, 9}, []step{{"jane", 0, true, 0}, {"john", 0, true, 0}, {"jim", 0, true, time.Second}, {"jim", time.Second, true, 0}}},
		"what is refused costs nothing":       {share{1, 1, 9}, share{1, 2, 9}, []step{{"jane", 0, true, 0}, {"jane", 0, true, time.Second}, {"jane", 0, true, time.Second}, {"john", 0, true, 0}}},
		"under way at a time":                 {share{100, 100, 2}, ample, []step{{"jane", 0, false, 0}, {"jane", 0, true, 0}, {"jane", 0, false, 0}, {"jane", time.Hour, true, freeAgain}, {"john", 0, true, 0}}},
		"under way at a time, of all":         {ample, share{100, 100, 1}, []step{{"jane", 0, true, 0}, {"jane", 0, false, 0}, {"john", 0, true, freeAgain}}},
	} {
		t.Run(reason, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			b := budgetOf(tc.each, tc.all)
			b.now = clock.Now
			for i, s := range tc.steps {
				clock.SetTime(clock.Now().Add(s.after))
				end, again := b.request(s.user)
				assert.InDelta(t, s.again.Seconds(), again.Seconds(), 0.001, "step %d", i)
				require.Equal(t, s.again == 0, end != nil, "step %d", i)
				if end != nil && s.ends {
					end()
				}
			}
		})
	}
}

// Nothing is kept of users who have not asked for long, and all of those who have something under way.
func TestBudget_forgets(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b := newBudget()
	b.now = clock.Now
	ended, _ := b.request("gone")
	ended()
	_, _ = b.request("waits")
	_, _ = b.log("reads")
	for range 2 { // an hour later, there is enough
		b.page("opens")
	}
	b.watch("looks")
	clock.SetTime(clock.Now().Add(time.Hour))
	_, _ = b.request("jane")
	assert.Contains(t, b.by, "waits")
	assert.Contains(t, b.by, "reads")
	assert.Contains(t, b.by, "looks")
	assert.NotContains(t, b.by, "gone")
	assert.NotContains(t, b.by, "opens")
}

// Who has spent what there was does not have it again by being forgotten.
func TestBudget_remembersWhatWasSpent(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	b := budgetOf(share{perSecond: 0.001, burst: 1, atATime: 1}, shareOfAll)
	b.now = clock.Now
	ended, _ := b.request("jane")
	ended()
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	refused, _ := b.request("jane")
	assert.Nil(t, refused)
	b = newBudget()
	b.now, b.pages = clock.Now, share{perSecond: 0.001, burst: 1}
	assert.Zero(t, b.page("jane"))
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	assert.NotZero(t, b.page("jane"))
}

func TestBudget_logsOfAll(t *testing.T) {
	b := newBudget()
	var last func()
	for i := range maxLogs {
		last, _ = b.log(fmt.Sprint(i))
		require.NotNil(t, last)
	}
	refused, _ := b.log("jane")
	assert.Nil(t, refused)
	last()
	after, _ := b.log("jane")
	assert.NotNil(t, after, "one has ended")
}

func TestBudget_logs(t *testing.T) {
	b := newBudget()
	var last func()
	for range maxLogsEach {
		last, _ = b.log("jane")
		require.NotNil(t, last)
	}
	refused, again := b.log("jane")
	assert.Nil(t, refused)
	assert.Equal(t, closeAgain, again)
	others, _ := b.log("john")
	assert.NotNil(t, others)
	last()
	after, _ := b.log("jane")
	assert.NotNil(t, after, "one has ended")
}

// What is watched for a user, and for all, is bounded, and is free again when it ends.
func TestBudget_watches(t *testing.T) {
	b := newBudget()
	var last func()
	for range maxWatchesEach {
		last = b.watch("jane")
		require.NotNil(t, last)
	}
	assert.Nil(t, b.watch("jane"))
	assert.NotNil(t, b.watch("john"))
	last()
	require.NotNil(t, b.watch("jane"), "one has ended")
	for i := range maxWatches - maxWatchesEach - 1 {
		last = b.watch(fmt.Sprint(i))
		require.NotNil(t, last)
	}
	assert.Nil(t, b.watch("jim"))
	last()
	assert.NotNil(t, b.watch("jim"), "one has ended")
	read, _ := b.log("jim")
	assert.NotNil(t, read, "logs are counted by themselves")
}

// A user who asks for too much is told when to ask again, on a page; what the hub has in memory is shown, and others are served.
func TestShared_budgetOfAUser(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	create(t, api, cluster(ns, "berlin"), &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: v1alpha1.GitSyncSpec{URL: "https://127.0.0.1:1/team.git"}})
	s := openShared(t, account(t, api))
	s.server.budget = budgetOf(share{1, 2, 2}, shareOfAll)
	s.server.budget.now = s.clock.Now
	jane, john := s.signIn(ns), s.signIn("john-"+ns)
	page := objectLink("", "", "kubernetesclusters", ns, "berlin")
	for range 2 {
		require.Equal(t, http.StatusOK, jane.page(page).status)
	}
	sync := objectLink("", "", "gitsyncs", ns, "team")
	for _, path := range []string{page, sync + "/manifests", sync + "/actions/suspend", logsLink(keyOf(cluster(ns, "berlin")), ns, "web"), logsLink(keyOf(cluster(ns, "berlin")), ns, "web") + "/follow", "/catalog/none/install", "/live?object=" + page} {
		refused := jane.page(path)
		assert.Equal(t, http.StatusTooManyRequests, refused.status, path)
		assert.NotEmpty(t, refused.header.Get("Retry-After"), path)
		assert.Contains(t, refused.body, "Too many requests", path)
	}
	assert.Contains(t, jane.page("/").body, "berlin", "it costs no cluster anything")
	assert.Equal(t, http.StatusForbidden, john.page(page).status, "others are answered")
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	assert.Equal(t, http.StatusOK, jane.page(page).status)
}

// Pages from memory are bounded for each user, so that a script cannot keep the dashboard from others; a hundred tabs that are opened at once
// are no script.
func TestShared_pagesOfAUser(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	s.server.budget.now = s.clock.Now
	jane, john := s.signIn("jane"), s.signIn("john")
	const tabs = 100
	for i := range tabs {
		require.Equal(t, http.StatusOK, jane.page("/").status, "tab %d", i)
		assert.Zero(t, s.server.budget.page("jane"), "its stream")
	}
	for s.server.budget.page("jane") == 0 {
	}
	for _, path := range []string{"/", "/catalog", "/gitsyncs", "/search?q=web", "/catalog/web", "/live?kind=GitSync"} {
		refused := jane.page(path)
		assert.Equal(t, http.StatusTooManyRequests, refused.status, path)
		assert.Equal(t, "1", refused.header.Get("Retry-After"), path)
		assert.Contains(t, refused.body, "Too many requests", path)
	}
	assert.Equal(t, http.StatusOK, john.page("/").status, "others are served")
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	assert.Equal(t, http.StatusOK, jane.page("/").status)
}
