// Package excerpt cuts texts that others wrote too long for a status, a condition or an event.
package excerpt
