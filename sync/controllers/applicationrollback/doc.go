/*
Package applicationrollback reconciles ApplicationRollbacks: each takes an application back to a
snapshot, data and objects, or leaves it as it was.

	Pending ─► Saving ─► Holding ─► ScalingDown ─► Restoring ─► Swapping ─► Applying ─► ScalingUp ─► Checking ─► Completed ─► Confirmed
	   │          │         └────────────┴─────────────┴────────────┴──┬─────────┴───────────┴───────────┴──────────┘
	   └──────────┴─► Failed ◄─────────────────────────────────── Reverting ─► Reverted

A phase is in the status before it is acted on, and what is needed to go back is in the status before
anything is changed, so that a process may end at any line. Every step looks at the cluster to see what
is left to be done. It waits for events, and no phase waits for ever: what takes too long is reverted.

Until the application is Completed, what others write to its workloads is overwritten. The volumes of before
are kept, bound to nothing, until the rollback is confirmed or its undo period is over.
*/
package applicationrollback
