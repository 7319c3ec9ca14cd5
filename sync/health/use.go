package health

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inUse are the rules of this process. A process computes health in one way, whatever cluster an object
// is in: so they are not passed along with each object.
var inUse struct {
	book atomic.Pointer[Book]

	mu sync.Mutex
	// told are the functions to call when other rules come into use.
	told map[*func(func(schema.GroupKind) bool)]bool
}

// InUse returns the rules that Of goes by. Others are another Book.
func InUse() *Book {
	if book := inUse.book.Load(); book != nil {
		return book
	}
	return builtIn()
}

// RuleOf returns the rule that Of goes by for a kind; nil if that is none of a Book. It is the same one as
// long as it says the same.
func RuleOf(gk schema.GroupKind) *Rule { return InUse().find(gk) }

// Use has Of go by the rules that an operator has added to those that Waybill comes with, and over them;
// nil for none. It calls the functions that were registered with OnChange.
func Use(added *Book) {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	before, now := InUse(), builtIn()
	if added != nil {
		now = added.over(now).like(before)
	}
	inUse.book.Store(now)
	changed := func(gk schema.GroupKind) bool { return !before.find(gk).says(now.find(gk)) }
	for told := range inUse.told {
		(*told)(changed)
	}
}

// OnChange has a function called, until ctx ends, when other rules come into use, with the kinds whose
// health they compute in another way. It must return at once.
func OnChange(ctx context.Context, told func(changed func(schema.GroupKind) bool)) {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	if inUse.told == nil {
		inUse.told = make(map[*func(func(schema.GroupKind) bool)]bool)
	}
	inUse.told[&told] = true
	context.AfterFunc(ctx, func() {
		inUse.mu.Lock()
		defer inUse.mu.Unlock()
		delete(inUse.told, &told)
	})
}
