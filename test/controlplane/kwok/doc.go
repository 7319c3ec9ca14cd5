// Package kwok pins the version of kwok that test/env builds and runs. It has
// no code of its own.
package kwok
