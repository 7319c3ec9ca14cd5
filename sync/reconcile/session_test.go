package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile"
)

func TestSessions_lastUntilTheyAreDropped(t *testing.T) {
	gs := newGitSync()
	key := reconcile.KeyOf(gs)
	assert.Equal(t, "team/web", key.String())
	type session struct{ passes int }
	var all reconcile.Sessions[reconcile.Key, session]
	assert.Nil(t, all.Get(key))
	all.Drop(key)

	begin := func() *session { return &session{} }
	all.Of(key, begin).passes++
	assert.Equal(t, 1, all.Of(key, begin).passes)
	assert.Same(t, all.Of(key, begin), all.Get(key))

	gs.UID = "2"
	assert.Zero(t, all.Of(reconcile.KeyOf(gs), begin).passes, "it is another object of the same name")
	all.Drop(key)
	assert.Nil(t, all.Get(key))
	assert.NotNil(t, all.Get(reconcile.KeyOf(gs)))
}
