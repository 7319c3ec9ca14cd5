// Package schema checks a manifest against the schemas of our CustomResourceDefinitions just as
// the API server does, without one: unknown fields, types, bounds, lists with keys, and every
// CEL rule, with the API server's own code.
//
// The command line validates with it offline, before the rules of package validation.
package schema
