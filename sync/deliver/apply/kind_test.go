package apply

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
)

// script plays events and writes to a kind in an order that a real API server
// would seldom give them.
type script struct {
	*kind
	feed   *feed
	holder *holder
	told   []Owner
}

var name = types.NamespacedName{Namespace: "shop", Name: "web"}

func newScript(t *testing.T) *script {
	t.Helper()
	s := &script{}
	a := &Applier{ctx: t.Context(), notify: func(o Owner) { s.told = append(s.told, o) }}
	s.holder = &holder{owner: Owner{HubID: "hub", Kind: "GitSync", Namespace: "a", Name: "b"}, mark: "us", records: map[recordKey]*record{}}
	s.kind = &kind{
		applier: a,
		gvk:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		objects: map[types.NamespacedName]*object{},
		feeds:   map[string]*feed{},
		users:   map[*holder]map[string]bool{},
		waiting: map[*holder]bool{},
	}
	s.feed = newFeed(everywhere, empty(), s.kind)
	s.feeds[everywhere] = s.feed
	s.feed.Start(t.Context())
	require.NoError(t, s.feed.Await(t.Context()))
	return s
}

// empty is where there is nothing, at version 1.
func empty() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // as a server that knows no streaming lists
			}
			return apiwatch.NewFake(), nil
		},
	}
}

// seen is the object at a version with a uid and fields of ours.
func seen(version string, uid types.UID, fields byte) *observed {
	return &observed{name: name, live: &live{version: version, uid: uid, fields: digest{fields}, owner: "us"}}
}

// write applies the object with an answer; meanwhile plays what comes before the
// answer does.
func (s *script) write(answer *observed, meanwhile func()) {
	s.begin(name, s.holder)
	meanwhile()
	r := &record{holder: s.holder, desired: digest{9}, uid: answer.live.uid, fields: answer.live.fields}
	s.settle(name, answer.live, r)
	s.holder.records[recordKey{s.kind, name}] = r
}

func (s *script) upToDate() bool { return s.see(name, s.holder).upToDate(&item{desired: digest{9}}) }

func nothing() {}

func TestKind_eventBeforeAnswer(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), func() { s.put(s.feed, seen("10", "u", 1)) })
	assert.True(t, s.upToDate())
	assert.Empty(t, s.told, "it is our own")
}

func TestKind_answerBeforeEvent(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), nothing)
	assert.True(t, s.upToDate(), "what we wrote is seen at once")
	s.put(s.feed, seen("10", "u", 1))
	assert.Empty(t, s.told)
}

func TestKind_eventOfBeforeTheWriteComesLate(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), nothing)
	s.put(s.feed, seen("9", "u", 7))
	s.drop(s.feed, seen("8", "old", 7))
	assert.True(t, s.upToDate())
	assert.Empty(t, s.told)
}

func TestKind_editedBeforeTheAnswer(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), func() {
		s.put(s.feed, seen("10", "u", 1))
		s.put(s.feed, seen("11", "u", 2))
	})
	assert.False(t, s.upToDate())
	assert.Len(t, s.told, 1)
}

func TestKind_deletedBeforeTheAnswer(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), func() {
		s.put(s.feed, seen("10", "u", 1))
		s.drop(s.feed, seen("11", "u", 1))
	})
	assert.False(t, s.upToDate(), "the answer is older than the deletion")
	assert.Len(t, s.told, 1)
}

func TestKind_toldOncePerChange(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), nothing)
	s.put(s.feed, seen("11", "u", 2))
	s.put(s.feed, seen("12", "u", 2))
	s.put(s.feed, seen("13", "u", 2))
	assert.Len(t, s.told, 1, "that others go on writing is no news")
	s.put(s.feed, seen("14", "u", 1))
	assert.True(t, s.upToDate(), "another has corrected it")
}

func TestKind_replace(t *testing.T) {
	cases := map[string]struct {
		reason  string
		listed  []*observed
		version string
		told    int
		good    bool
	}{
		"Same":      {"a new connection shows what was known", []*observed{seen("10", "u", 1)}, "20", 0, true},
		"Edited":    {"it was edited while nobody watched", []*observed{seen("15", "u", 2)}, "20", 1, false},
		"Deleted":   {"it was deleted while nobody watched", nil, "20", 1, false},
		"MadeAnew":  {"it was deleted and created while nobody watched", []*observed{seen("15", "v", 1)}, "20", 1, false},
		"Old":       {"the list is older than our write", nil, "9", 0, true},
		"OldObject": {"the list is older than our write", []*observed{seen("8", "u", 7)}, "9", 0, true},
		"Restored":  {"the server was restored from a backup of before", []*observed{seen("3", "u", 7)}, "4", 1, false},
		"Equal":     {"it was restored, and what is in the fields may be old", []*observed{seen("3", "u", 1)}, "4", 1, false},
		"Lost":      {"the server was restored from a backup of before", nil, "4", 1, false},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			s := newScript(t)
			s.replace(s.feed, nil, "5")
			s.write(seen("10", "u", 1), nothing)
			s.replace(s.feed, tc.listed, tc.version)
			assert.Len(t, s.told, tc.told, tc.reason)
			assert.Equal(t, tc.good, s.upToDate(), tc.reason)
		})
	}
}

func TestKind_replaceOfOneNamespace(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), nothing)
	other := newFeed("other", nil, s.kind)
	s.feeds["other"] = other
	s.replace(other, nil, "20")
	assert.True(t, s.upToDate(), "it is in another namespace")
}

func TestKind_feedOfThePastIsNotHeard(t *testing.T) {
	s := newScript(t)
	s.write(seen("10", "u", 1), nothing)
	past := newFeed(everywhere, nil, s.kind)
	s.put(past, seen("11", "u", 2))
	s.drop(past, seen("12", "u", 1))
	s.replace(past, nil, "13")
	assert.True(t, s.upToDate())
	assert.Empty(t, s.told)
}

// A right in all namespaces that is not needed is not asked for again and again.
func TestKind_doesNotRegainWhatNobodyNeeds(t *testing.T) {
	s := newScript(t)
	refused := newFeed(everywhere, nil, s.kind)
	a := newFeed("a", empty(), s.kind)
	s.mu.Lock() // the feed of the script may still say that it is synced
	s.feeds["a"], s.feeds[everywhere] = a, refused
	s.mu.Unlock()
	a.Start(t.Context())
	require.NoError(t, a.Await(t.Context()))
	s.users[s.holder] = map[string]bool{"a": true}
	s.regain(refused)
	assert.Same(t, refused, s.feeds[everywhere])

	assert.True(t, s.allCovered())
	s.users[s.holder]["b"] = true
	assert.False(t, s.allCovered())
	s.users[s.holder] = map[string]bool{}
	assert.False(t, s.allCovered(), "what it delivers to is not known yet")
}

// C37: rights by namespace are lost and come back one after the other. Who delivers to what comes
// back last is notified then, too: what Helm wrote is never applied, so that no apply would ask.
func TestKind_tellsOfEachScopeThatIsRegained(t *testing.T) {
	s := newScript(t)
	s.scope(everywhere)
	first, second, both, begun := s.user("a"), s.user("b"), s.user("a", "b"), s.user()
	for _, scope := range []string{"a", "b"} {
		s.lost(s.scope(scope), apierrors.NewForbidden(schema.GroupResource{}, "", nil), false)
	}
	s.told = nil
	s.synced(s.watched("a"))
	assert.ElementsMatch(t, []Owner{first.owner, second.owner, both.owner, begun.owner}, s.told)
	s.told = nil
	s.synced(s.watched("b"))
	assert.ElementsMatch(t, []Owner{second.owner, both.owner, begun.owner}, s.told, "all is watched that the first delivers to")
	s.told = nil
	s.synced(s.feeds["b"])
	assert.Equal(t, []Owner{begun.owner}, s.told, "it has not said yet what it delivers to")
}

// What a holder begins to deliver to counts, although it says only at its end that it does.
func TestKind_tellsOfTheScopeThatIsNew(t *testing.T) {
	s := newScript(t)
	s.scope(everywhere)
	h := s.user("a")
	s.lost(s.scope("a"), apierrors.NewForbidden(schema.GroupResource{}, "", nil), false)
	s.refused("b")
	require.Error(t, s.awaitAllowed("b", h))
	s.synced(s.watched("a"))
	s.told = nil
	s.synced(s.watched("b"))
	assert.Equal(t, []Owner{h.owner}, s.told)
}

// A watch that is interrupted goes on by itself; one that was refused does not.
func TestKind_observesWhatNobodyWatches(t *testing.T) {
	s := newScript(t)
	s.replace(s.feed, []*observed{seen("10", "u", 1)}, "10")
	f := s.scope(everywhere)
	_, is := s.observe(name, s.holder)
	assert.Equal(t, unwatched, is, "it has shown nothing yet")
	s.replace(f, []*observed{seen("10", "u", 1)}, "10")
	_, is = s.observe(name, s.holder)
	assert.Equal(t, unseen, is)
	s.refused(everywhere)
	_, is = s.observe(name, s.holder)
	assert.Equal(t, unwatched, is)
}

// user is a holder that delivers to some namespaces.
func (s *script) user(namespaces ...string) *holder {
	h := &holder{owner: Owner{HubID: "hub", Kind: "ApplicationInstallation", Name: fmt.Sprint(namespaces)}}
	s.users[h] = map[string]bool{}
	for _, namespace := range namespaces {
		s.users[h][namespace] = true
	}
	return h
}

// scope puts a feed that was not started in place of that of a scope.
func (s *script) scope(scope string) *feed {
	s.mu.Lock() // the feed of the script may still say that it is synced
	defer s.mu.Unlock()
	s.feeds[scope] = newFeed(scope, nil, s.kind)
	return s.feeds[scope]
}

// watched puts a feed that is synced, and notifies no owner, in place of that of a scope.
func (s *script) watched(scope string) *feed { return s.started(scope, empty()) }

// refused puts a feed that has given up, and notifies no owner, in place of that of a scope.
func (s *script) refused(scope string) *feed {
	denied := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	return s.started(scope, &cache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, denied },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) { return nil, denied },
	})
}

func (s *script) started(scope string, source *cache.ListWatch) *feed {
	f := s.scope(scope)
	f.Feed = watch.New(source, f, f.reduce)
	f.Start(s.applier.ctx)
	_ = f.Await(s.applier.ctx)
	return f
}

// A namespace has no watch of its own beside one of all namespaces, also if that is back by itself.
func TestKind_oneWatchOfAllNamespacesIsEnough(t *testing.T) {
	s := newScript(t)
	s.scope(everywhere)
	s.watched("a")
	all := s.watched(everywhere)
	s.synced(all)
	assert.Equal(t, map[string]*feed{everywhere: all}, s.feeds)
	require.NoError(t, s.await(t.Context(), "a"), "who waits for the one waits for the other")
	assert.Equal(t, map[string]*feed{everywhere: all}, s.feeds)
}

// C37: what is lost is asked for again by itself, soon at first. How long it took until the right was
// granted at last says nothing of how soon it is back.
func TestKind_regainsSoonWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		api := &denying{begun: time.Now()}
		s.applier.target = api
		s.users[s.holder] = map[string]bool{"a": true}
		lost := s.refused(everywhere)
		lost.version, lost.pause = "5", retryDenied
		s.lost(lost, apierrors.NewForbidden(schema.GroupResource{}, "", nil), false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute}, api.asked)
	})
}

// denying is a target that may not be watched. It keeps when it was asked.
type denying struct {
	Target
	metadata.Getter
	begun time.Time
	asked []time.Duration
}

func (d *denying) Metadata() metadata.Interface { return d }

func (d *denying) Resource(schema.GroupVersionResource) metadata.Getter { return d }

func (d *denying) Namespace(string) metadata.ResourceInterface { return d }

func (d *denying) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return nil, d.ask()
}

func (d *denying) Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
	return nil, d.ask()
}

// ask records when a try was made, however many requests it took.
func (d *denying) ask() error {
	if now := time.Since(d.begun); !slices.Contains(d.asked, now) {
		d.asked = append(d.asked, now)
	}
	return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
}

func TestKind_healthIsToldWhenAskedFor(t *testing.T) {
	s := newScript(t)
	s.full = true
	sick := func(version string, status health.Status, message string) *observed {
		o := seen(version, "u", 1)
		o.live.status, o.live.message = status, message
		return o
	}
	s.write(seen("10", "u", 1), nothing)
	s.put(s.feed, sick("11", health.Current, ""))
	assert.Empty(t, s.told, "no owner asked")

	s.holder.health.Store(true)
	s.put(s.feed, sick("12", health.InProgress, "Replicas: 0/2"))
	assert.Len(t, s.told, 1)
	s.put(s.feed, sick("13", health.InProgress, "Replicas: 1/2"))
	assert.Len(t, s.told, 1, "progress is not told step by step")
	s.put(s.feed, sick("14", health.Failed, "deadline exceeded"))
	s.put(s.feed, sick("15", health.Failed, "deadline exceeded"))
	s.put(s.feed, sick("16", health.Failed, "quota exceeded"))
	assert.Len(t, s.told, 3, "the reason of a failure is")
}

func TestKind_keepsNothingOfWhatIsGone(t *testing.T) {
	s := newScript(t)
	s.put(s.feed, seen("10", "u", 1))
	s.drop(s.feed, seen("11", "u", 1))
	s.begin(name, s.holder)
	s.abort(name, s.holder)
	s.write(seen("12", "v", 1), nothing)
	s.forget(name, s.holder)
	s.drop(s.feed, seen("13", "v", 1))
	assert.Empty(t, s.objects)
}
