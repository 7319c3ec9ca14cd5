// Package webpage recognises web pages, such as login pages, where a server should have sent something
// else.
package webpage
