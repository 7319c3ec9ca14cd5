// Package render implements the command `render`: it shows what would be applied, without applying
// it.
package render
