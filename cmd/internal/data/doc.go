// Package data implements the commands for the data of applications: `snapshot`, `restore`, `clone` and
// `rollback`. All they do is write objects and follow what those say of themselves, so `kubectl` can do
// the same.
package data
