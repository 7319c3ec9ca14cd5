// Package delivery keeps the objects of an owner in a cluster as the owner wants them.
//
// A Delivery is one owner in one cluster. A reconciliation of the owner says whether the cluster can be
// used (Use, Lose), has it take in what has happened since (Look), and says what is wanted (Set). It
// returns a State, and enqueues the owner when another reconciliation is worthwhile: a job has ended,
// another client has changed an object, something that was waited for is there, or it is time to try or to
// check again. So a reconciliation needs to know neither of jobs nor of times.
//
// A job brings the cluster to what is wanted. It is due when that differs from what was last tried, when
// what failed is to be tried again, when objects have drifted, or when there is something that no watch
// shows. It runs outside of the workers, in the lane of its cluster: a cluster that does not answer holds
// up no other. What is wanted may change while it runs: it ends first, and its result counts.
//
//	             Use                     Set                  its turn
//	Unavailable ────► New ─────────────────────────► Queued ───────────► Working
//	   ▲  ▲                                            ▲                    │ the job ends
//	   │  │ Lose, from any phase: the job is dropped   │                    ▼
//	   │  └──────────────────────────────────────┐     │     ┌──────────────┼─────────────┬────────────┐
//	   │                                         │     │     ▼              ▼             ▼            ▼
//	   └─────────────────────────────────────────┴───────  Failed        Waiting      Delivered ◄─► Contested
//	                                                   │     │              │             │            │
//	                                                   └─────┴──────────────┴─────────────┴────────────┘
//	                                                     Set: another digest, or from
//	                                                     Failed: its back-off is over
//	                                                     Waiting: it is there, or cannot be watched, and is checked
//	                                                     Delivered: drift
//	                                                     Contested: drift, after a pause
//
// Forget ends a Delivery in any phase, and leaves the objects as they are. To have them deleted, Set a
// Want that deletes them, and Forget when nothing is left.
package delivery
