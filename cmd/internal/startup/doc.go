// Package startup is how a program that runs in a cluster begins: what it is called with, how it
// reaches its API server, and what it says when it cannot go on.
package startup
