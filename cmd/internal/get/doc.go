// Package get implements the command `get`: it shows objects of our kinds, in one cluster or in all
// of them.
package get
