// Package watch watches objects of any kind without keeping them: what is seen of them is
// reduced at once and handed on. It goes on whatever becomes of the connection, and says
// plainly what may not be watched and what is not served.
package watch
