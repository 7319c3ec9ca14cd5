// Package describe implements the command `describe`: it shows one object in full, for people.
package describe
