// Package events implements the command `events`: it shows the events of an object and of what became
// of it, wherever that is.
package events
