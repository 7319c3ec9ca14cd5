// Package turns limits how many users a resource has at a time, and shares it fairly: a user with much
// to do does not keep the others waiting until all of that is done. A Group counts users without a limit, so that
// their end can be awaited.
package turns
