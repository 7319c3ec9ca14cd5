// Demo starts a hub and two user clusters from nothing, with a git server, a Helm
// repository and an OCI registry, and plays what a platform team and its users do: commit,
// upgrade, interfere, be refused, remove. It tells what happens and how long it took.
//
// It ends with a summary and exit code 0, or with the step that failed, what the objects
// say about it and the ends of the logs. With KEEP=1 it leaves everything up until Ctrl-C.
package main
