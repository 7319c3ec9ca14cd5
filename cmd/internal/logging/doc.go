// Package logging sets up the log of a program that runs in a cluster.
package logging
