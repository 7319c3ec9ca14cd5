package env

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// events are lines of an audit log: the stage and the audit ID, which is the name of
// what was requested, too.
func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		stage, id, _ := strings.Cut(e, " ")
		verb, uri := "create", "/api/"+id
		if strings.HasPrefix(id, "watch") {
			verb = "watch"
		}
		if id == "sentinel" {
			uri = sentinelPath + id
		}
		fmt.Fprintf(&b, `{"auditID":%q,"stage":%q,"verb":%q,"requestURI":%q,"objectRef":{"name":%q}}`+"\n", id, stage, verb, uri, id)
	}
	return b.String()
}

func names(requests []Request) []string {
	list := []string{}
	for _, r := range requests {
		list = append(list, r.Name)
	}
	return list
}

// What a test is notified of must neither depend on how fast the API server writes its log
// nor on what other tests do at the same time.
func TestAuditLog_orderOfLines(t *testing.T) {
	const received, ended, started = "RequestReceived ", "ResponseComplete ", "ResponseStarted "
	for name, c := range map[string]struct {
		reason        string
		before, after []string
		want, pending []string
	}{
		"in order": {
			reason: "the usual case",
			before: []string{received + "a", ended + "a"},
			after:  []string{received + "b", ended + "b", received + "sentinel", ended + "sentinel"},
			want:   []string{"b"},
		},
		"late end": {
			reason: "an answer may reach the client before its line reaches the log",
			after:  []string{received + "a", received + "sentinel", ended + "sentinel", received + "b", ended + "b", ended + "a"},
			want:   []string{"a"},
		},
		"missing end": {
			reason:  "the reader knows that a line is still to come",
			after:   []string{received + "a", received + "sentinel", ended + "sentinel"},
			want:    []string{},
			pending: []string{"a"},
		},
		"old request": {
			reason: "what was sent before the mark is not of this test",
			before: []string{received + "a"},
			after:  []string{ended + "a", received + "b", ended + "b", received + "sentinel"},
			want:   []string{"b"},
		},
		"panic": {
			reason: "a handler that breaks off ends its request",
			after:  []string{received + "a", received + "sentinel", "Panic a"},
			want:   []string{"a"},
		},
		"watches": {
			reason: "they are there when they begin, and are not waited for",
			before: []string{started + "watch-old"},
			after:  []string{started + "watch-a", ended + "watch-old", received + "sentinel", started + "watch-b"},
			want:   []string{"watch-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mark auditLog
			require.NoError(t, mark.read(strings.NewReader(events(c.before...))))
			log := auditLog{offset: mark.offset, earlier: mark.pending, sentinel: sentinelPath + "sentinel", ends: true}
			require.NoError(t, log.read(strings.NewReader(events(append(c.before, c.after...)...))))
			assert.Equal(t, len(c.pending) == 0, log.done(), c.reason)
			assert.Equal(t, c.want, names(log.requests), c.reason)
			for _, id := range c.pending {
				assert.Contains(t, log.pending, id, c.reason)
			}
			assert.Len(t, log.pending, len(c.pending), c.reason)
		})
	}
}

// A mark ends with its sentinel, so that what comes after it is of the test.
func TestAuditLog_mark(t *testing.T) {
	content := events("RequestReceived a", "RequestReceived sentinel")
	log := auditLog{sentinel: sentinelPath + "sentinel"}
	require.NoError(t, log.read(strings.NewReader(content+events("RequestReceived b"))))
	assert.True(t, log.done(), "it waits for no request")
	assert.EqualValues(t, len(content), log.offset)
	assert.Contains(t, log.pending, "a")
}

// A request that the API server took to its grave is not waited for.
func TestAuditLog_crash(t *testing.T) {
	before := events("RequestReceived lost")
	var log auditLog
	require.NoError(t, log.read(strings.NewReader(before+events("RequestReceived later"))))
	log.drop(int64(len(before)))
	assert.NotContains(t, log.pending, "lost")
	assert.Contains(t, log.pending, "later")
}

// A line that is not all there yet is read when it is.
func TestAuditLog_halfLine(t *testing.T) {
	content := events("RequestReceived a", "ResponseComplete a")
	var log auditLog
	require.NoError(t, log.read(strings.NewReader(content[:len(content)-5])))
	assert.Empty(t, log.requests)
	require.NoError(t, log.read(strings.NewReader(content)))
	assert.Equal(t, []string{"a"}, names(log.requests))
}
