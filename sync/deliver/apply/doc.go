// Package apply delivers objects to one API server. It is the only way in which objects are
// written, except by Helm.
//
// An Applier server-side-applies the objects of an owner, prunes what the owner no longer wants,
// and from then on watches what it wrote. What it knows of live objects comes from watches alone,
// and it keeps little of each: its owner, and a digest of the fields that are ours. So an Apply
// that changes nothing sends the API server no request, and Options.Notify is called as soon as a
// delivered object is edited or deleted.
//
// What an Applier knows ends with its process. Digest identifies it in a few bytes for the next one,
// which then resumes without a request if nothing has changed meanwhile (Request.Digest).
//
// Nothing in this package sleeps or polls. Objects that cannot be written yet, because their kind
// or namespace does not exist or an object of that name is still being deleted, are returned in
// Result.Waiting, and Notify is called when another try is worthwhile.
//
// Ownership is decided before the first write, by the annotation apps.waybill.dev/owner: an absent
// object is created, one of ours is corrected, and one of another owner is a conflict and stays as
// it is.
package apply
