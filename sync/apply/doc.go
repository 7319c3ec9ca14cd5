// Package apply delivers objects to one API server: the one way that objects get
// written, except by Helm.
//
// An Applier server-side-applies the objects of an owner, prunes what the owner
// no longer wants, and from then on watches what it wrote. What it knows of live
// objects comes from watches alone, and of each it keeps a few words: who owns
// it, and a digest of the fields that are ours. So an Apply that changes nothing
// asks the API server nothing, and a delivered object that is edited or deleted
// is reported at once, through Options.Notify.
//
// Nothing in here sleeps or polls. What cannot be written yet, because its kind or
// namespace does not exist or an object of that name is still being deleted, is
// returned as Waiting, and Notify comes when it is worth another try.
//
// Whose an object is, is decided before the first write, on its annotation
// apps.waybill.dev/owner: an absent one is created, one of ours is put right, and
// one of anybody else is a conflict and stays as it is (C13, C53).
package apply
