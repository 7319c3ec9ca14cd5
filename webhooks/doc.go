// Package webhooks implements admission for the Waybill kinds: it fills in what the user left out,
// and refuses at once what would break later or would give users rights that they do not have.
//
// One file holds the rules of one kind. Rules that need no look-up are in package api/validation,
// so that the command line applies the same ones; this package adds the look-ups, the permission
// checks and the dry run of health checks. Decisions have no side effects. Deletions,
// and updates that leave the spec alone, even of an object that is being deleted, cost no look-up. Every decision is counted in one place, observe in validator.go. What may be decoded at all
// is decided before, by the server (package intake) and, with what the request says of itself, by
// screen.
package webhooks
