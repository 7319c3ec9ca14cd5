/*
Package statefulapplication reconciles StatefulApplications. One that only names an Application is Ready
as long as that exists. One with a source is restored from it, once:

	Pending ──► Claims ◄─► Objects ──► Completed
	               └──────────┴──► Failed   the snapshot is gone, or its definitions are damaged

It goes back to Claims if a claim is deleted before the restore is complete: it is created again there.

What an ApplicationInstallation manages is restored as one: its claims, and what else is not rendered by
it, are created first, and the installation last, which takes them over. The rest is up to the controller
that reconciles it.

Until Claims nothing is created. The phase, and the list of all that is created, are in the status
before the first object is; each object has the UID of the StatefulApplication in an annotation, so that a
pass after a restart knows what is there already. What the API server refuses is tried again, and all
other objects are created meanwhile. What was completed is never done again, whatever becomes of the
objects.

In another namespace than the snapshot's, claims need a VolumeSnapshot of their own: a static
VolumeSnapshotContent leads to the same snapshot of the driver, and goes when the claim has its volume.
*/
package statefulapplication
