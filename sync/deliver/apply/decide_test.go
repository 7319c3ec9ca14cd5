package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// C13, C53
func TestDecide(t *testing.T) {
	const us, them = "hub/GitSync/a/b", "hub/GitSync/c/d"
	ours := digest{1}
	cases := map[string]struct {
		reason string
		evidence
		want verdict
	}{
		"Absent":          {"nothing is there", evidence{}, create},
		"AbsentAdopt":     {"nothing is there to adopt", evidence{adopt: anything}, create},
		"Ours":            {"the mark decides", evidence{live: &live{owner: us}}, overwrite},
		"OursMadeAnew":    {"the mark decides, not the uid", evidence{live: &live{owner: us, uid: "2"}, ownUID: "1"}, overwrite},
		"Theirs":          {"the mark decides", evidence{live: &live{owner: them}}, leave},
		"TheirsDelivered": {"an inventory is no title", evidence{live: &live{owner: them, fields: ours}, delivered: true}, leave},
		"TheirsAdopt":     {"the manifest asks for it", evidence{live: &live{owner: them}, adopt: anything}, overwrite},
		"LostAdopt":       {"it was taken from us by who may do so too", evidence{live: &live{owner: them, uid: "1"}, ownUID: "1", adopt: anything}, leave},
		"Nobodys":         {"what we did not make is not ours", evidence{live: &live{}}, leave},
		"NobodysAdopt":    {"the manifest asks for it", evidence{live: &live{}, adopt: anything}, overwrite},
		"Stripped":        {"the very object that we made", evidence{live: &live{uid: "1"}, ownUID: "1"}, overwrite},
		"NobodysUnowned":  {"the owner asks for it", evidence{live: &live{}, adopt: unowned}, overwrite},
		"TheirsUnowned":   {"somebody holds it", evidence{live: &live{owner: them}, adopt: unowned}, leave},
		"HelmsUnowned":    {"Helm holds it", evidence{live: &live{keeper: "Helm release a/b"}, adopt: unowned}, leave},
		"HelmsAdopt":      {"the manifest asks for it", evidence{live: &live{keeper: "Helm release a/b"}, adopt: anything}, overwrite},
		"StrippedAdopt":   {"the very object that we made", evidence{live: &live{uid: "1"}, ownUID: "1", adopt: anything}, overwrite},
		"Replaced":        {"another object of that name", evidence{live: &live{uid: "2", fields: ours}, ownUID: "1", delivered: true}, leave},
		"StrippedUnknown": {"our fields in what our inventory names", evidence{live: &live{fields: ours}, delivered: true}, overwrite},
		"ForeignFields":   {"the inventory names it, but nothing in it is ours", evidence{live: &live{}, delivered: true}, leave},
		"Deleting":        {"what is applied now would go with it", evidence{live: &live{owner: us, deleting: true}}, await},
		"DeletingTheirs":  {"it will be free", evidence{live: &live{owner: them, deleting: true}}, await},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.evidence.mark = us
			assert.Equal(t, tc.want, decide(tc.evidence), tc.reason)
		})
	}
}
