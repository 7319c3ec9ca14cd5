// Package adopt implements the command `adopt`: it writes an Application for existing objects, and
// annotates them as its components.
package adopt
