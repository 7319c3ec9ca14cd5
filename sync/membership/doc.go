// Package membership decides which Application an object belongs to, and which marks it should
// carry for that. It is pure: admission uses it for every write, and the Application controller for
// writes that admission missed, so that both come to the same result.
package membership
