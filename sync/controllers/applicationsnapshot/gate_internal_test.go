package applicationsnapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// nameOf returns a name of which the text says the namespace, too: a/1.
func nameOf(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// S87, C63: so many applications at a time are quiesced as the gate lets, of several namespaces in turn, and one that
// does not come to rest keeps the others waiting for a while only.
func TestGate_letsSoManyBegin(t *testing.T) {
	const lapse = 10 * time.Second
	for name, test := range map[string]struct {
		parallel int
		begin    string // in this order
		at       string // who has a turn then
		then     func(g *gate)
		after    string // who has got one since, in order
	}{
		"as many as there are turns": {parallel: 4, begin: "a/1 b/1 c/1 d/1 e/1", at: "a/1 b/1 c/1 d/1"},
		"of one namespace, half":     {parallel: 4, begin: "a/1 a/2 a/3 a/4 b/1", at: "a/1 a/2 b/1"},
		"one after the other":        {parallel: 1, begin: "a/1 a/2", at: "a/1", then: func(g *gate) { g.release("a/1") }, after: "a/2"},
		"namespaces take turns": {
			parallel: 1, begin: "a/1 a/2 a/3 b/1", at: "a/1",
			then: func(g *gate) {
				g.release("a/1")
				synctest.Wait()
				g.release("a/2")
			},
			after: "a/2 b/1",
		},
		"one that does not wait any more is left out": {
			parallel: 1, begin: "a/1 b/1 c/1", at: "a/1",
			then: func(g *gate) {
				g.release("b/1")
				g.release("a/1")
			},
			after: "c/1",
		},
		"a turn is released once": {
			parallel: 1, begin: "a/1 b/1 c/1", at: "a/1",
			then: func(g *gate) {
				g.release("a/1")
				g.release("a/1")
			},
			after: "b/1",
		},
		"a turn lapses": {parallel: 2, begin: "a/1 b/1 c/1 d/1 e/1", at: "a/1 b/1", then: func(*gate) { time.Sleep(lapse) }, after: "c/1 d/1"},
		"who has had it does not wait again": {
			parallel: 1, begin: "a/1 b/1", at: "a/1",
			then: func(g *gate) {
				time.Sleep(lapse)
				synctest.Wait()
				assert.True(t, g.begin("a/1", nameOf("a/1")))
				g.release("a/1")
			},
			after: "b/1",
		},
		"who begins again takes another": {
			parallel: 1, begin: "a/1", at: "a/1",
			then: func(g *gate) {
				g.release("a/1")
				synctest.Wait()
				assert.True(t, g.begin("a/1", nameOf("a/1")))
				assert.False(t, g.begin("b/1", nameOf("b/1")))
				g.release("b/1")
			},
		},
		"it is not over before": {parallel: 1, begin: "a/1 b/1", at: "a/1", then: func(*gate) { time.Sleep(lapse - 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				woken := make(chan string, 10)
				var g *gate
				g = newGate(ctx, test.parallel, lapse, func(n types.NamespacedName) {
					assert.True(t, g.begin(types.UID(n.String()), n), "woken, but it is not its turn")
					woken <- n.String()
				})
				var at []string
				for _, who := range strings.Fields(test.begin) {
					if g.begin(types.UID(who), nameOf(who)) {
						at = append(at, who)
					}
					synctest.Wait() // so that they wait in this order
				}
				assert.Equal(t, test.at, strings.Join(at, " "))
				if test.then != nil {
					test.then(g)
				}
				synctest.Wait()
				close(woken)
				var after []string
				for who := range woken {
					after = append(after, who)
				}
				slices.Sort(after)
				assert.Equal(t, test.after, strings.Join(after, " "))
				end()
				synctest.Wait()
			})
		})
	}
}

// S87: two snapshots of an application do not release it under each other.
func TestGate_letsOneQuiesceAnApplication(t *testing.T) {
	g := newGate(t.Context(), 1, time.Hour, nil)
	app := nameOf("a/app")
	assert.True(t, g.enter(app, "first", nameOf("a/first")))
	assert.True(t, g.enter(app, "first", nameOf("a/first")), "it holds it already")
	assert.False(t, g.enter(app, "second", nameOf("a/second")))
	assert.False(t, g.enter(app, "third", nameOf("a/third")))
	assert.Empty(t, g.release("second"), "it has held nothing")
	assert.ElementsMatch(t, []types.NamespacedName{nameOf("a/second"), nameOf("a/third")}, g.release("first"))
	assert.True(t, g.enter(app, "second", nameOf("a/second")))
	assert.Empty(t, g.release("second"), "the other was told once")
}
