// Package address decides which servers sources may be on, so that whoever writes a URL reaches
// nothing that answers only this machine.
package address
