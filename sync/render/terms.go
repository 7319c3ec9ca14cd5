package render

import (
	"context"
	"time"
)

// Terms are those on which something is rendered in a process of its own.
type Terms struct {
	// For is whom it is rendered for, such as a namespace: one with much to render keeps others waiting
	// no longer than one turn takes.
	For string
	// Time is how long it may take, without the time that it waits for others, if that is less than
	// anything may take. Zero for no other limit.
	Time time.Duration
}

type termsKey struct{}

// On returns a context for rendering on these terms.
func On(ctx context.Context, t Terms) context.Context {
	return context.WithValue(ctx, termsKey{}, t)
}

// TermsOf returns the terms of a context; the zero value if it has none.
func TermsOf(ctx context.Context) Terms {
	t, _ := ctx.Value(termsKey{}).(Terms)
	return t
}
