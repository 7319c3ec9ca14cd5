/*
Package executionhook reconciles ExecutionHooks: each is one run of a HookAction, in some Pods, one
after the other.

A command must not run twice, and afterwards there is no way to find out whether one did: that it is
about to run is in the status before it does. The states of the run in one container are

	Pending ──► Running ──► Succeeded
	                   ├──► Failed       another exit code, or the timeout; or its container is not there
	                   ├──► Unknown      the API server or the node did not say whether it ran
	                   └──► Interrupted  the process ended meanwhile

and what follows a failure is for the HookAction to say. What is done is never done again.
*/
package executionhook
