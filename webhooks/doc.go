// Package webhooks is admission for the kinds of Waybill: what is left out is filled in, and what
// would break later, or would give somebody rights that they do not have, is refused on the spot.
//
// One file holds the rules of one kind. What a rule can say without asking anybody is in package
// api/validation, so that the command line says the same; here are the look-ups, the permission
// checks (C35) and the dry run of health checks (C10). Everything is decided without side
// effects. Updates that leave the spec alone, also of what is already being deleted, and deletions
// cost no look-up (C49). Every decision is counted in one place, validator.go.
package webhooks
