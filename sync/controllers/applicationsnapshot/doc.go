/*
Package applicationsnapshot reconciles ApplicationSnapshots, and the ApplicationSnapshotContents that
come of them.

A snapshot is taken once. Its phase is in the status before the step of that phase creates or changes
anything (scope.commit), and what a step creates has a name that follows from the UID of the snapshot,
so that a process that takes over finds what was done:

	Pending ──► Capturing ──► Quiescing ──► Cutting ──► Releasing ──► Waiting ──► Binding ──► Ready
	   │            │             └────────────┴──────────►│              │           │
	   └────────────┴──────────────────────────────────────┴──────────────┴───────────┴─────► Failed

Whatever fails once an application may be quiesced passes through Releasing, which is also how a snapshot
is deleted then. What cannot succeed fails in Pending, before anything is done to the application. A
snapshot with an empty source goes from Pending to Binding.

While a rollback changes the application, a snapshot waits in Pending, also one that has waited in Capturing for another
snapshot of the application: it begins again, because the volumes may be others then.

Snapshots of many applications take turns from Pending until their applications are released (gate): each of
these waits at rest for the VolumeSnapshots of few others.

Nothing is polled: ExecutionHooks, VolumeSnapshots and Pods are watched, and one timer has the time limit.
*/
package applicationsnapshot
