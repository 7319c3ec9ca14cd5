// Package adopt implements the command `adopt`: it writes an Application for existing objects, and
// annotates them as its components (A89, A90).
package adopt
