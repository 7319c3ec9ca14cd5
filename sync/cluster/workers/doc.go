// Package workers does in one cluster what has to be done there for each of many keys, such as the copies
// of the objects of the hub. All requests to the cluster are made by the workers of its Pool, so that no
// cluster waits for another one.
//
// The states of a pool:
//
//	Learning ---> Working ---> Ended
//	 |    ^                      ^
//	 +----+ Learn fails: tried   |
//	 |      again after the      | the cluster is disengaged
//	 |      back-off, or when    |
//	 |      the cluster is back  |
//	 +---------------------------+
//
// The states of a key follow from its last error; Add puts it into the queue whatever its state is:
//
//	            +-- nil ----------------------> idle
//	            |-- the cluster is lost ------> until Retry is called, when it is back
//	queued ---> +-- reconcile.Stalled --------> until an event adds it
//	            |-- reconcile.Waiting --------> queued when the time is over, if there is one
//	            +-- any other ----------------> queued after the back-off
//
// No key is with two workers at once. The result of a key is kept for the status of its owner, which
// is notified when that changes.
package workers
