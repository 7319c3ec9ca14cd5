/*
Demo starts a hub and two user clusters from scratch, with a git server, a Helm repository and an
OCI registry, and plays through what a platform team and its users do: commit, upgrade,
interfere, be refused, remove. It prints what happens and how long it took.

With SEED=1 the clusters are those of a seed, a fourth API server, which gets its catalog from the hub.

It ends with a summary and exit code 0, or with the step that failed, the conditions of the
objects and the ends of the logs. With KEEP=1 it leaves everything running until Ctrl-C.
*/
package main
