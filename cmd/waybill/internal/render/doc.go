// Package render is the verb `render`: what would be applied, without applying it.
package render
