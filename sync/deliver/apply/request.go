package apply

import (
	"context"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// Request describes what an owner wants to have in the cluster.
type Request struct {
	// Owner of the objects. Applies of one owner run one after the other.
	Owner Owner
	// Objects is everything that the owner wants. They are not changed, so they may
	// be shared between Appliers.
	Objects []manifest.Object
	// Inventory is what was delivered for the owner before.
	Inventory []manifest.ID
	// Prune deletes what is in Inventory and not in Objects. If it is false, all of that stays in the
	// cluster and in Result.Inventory, and so does what may still be wanted, or is still used, because
	// something could not be read or applied; a Warning says why.
	Prune bool
	// Unread has the problems of manifests that the owner wants too and that could not be read. What
	// one of them may describe is not pruned: everything, if nothing is known of the object.
	Unread []manifest.Problem
	// Unkept names objects that are pruned although they carry the prune annotation, even if it seems
	// to be from a manifest: their manifests never set it.
	Unkept []manifest.ID
	// Adopt takes over objects that exist and that nothing else manages: neither another owner, nor a
	// release of Helm, nor a controller. The adopt annotation of a manifest wins.
	Adopt bool
	// Force deletes an object of which a field cannot be changed, and creates it again, if its kind is one
	// of Kubernetes itself that holds no data. The force annotation of a manifest wins.
	Force bool
	// Ignored names fields that others set. They are applied when an object is created, and left as they
	// are from then on.
	Ignored *ignore.Rules
	// DefaultNamespace is the namespace of namespaced objects that name none.
	DefaultNamespace string
	// As, if not nil, returns the API server under the identity that writes an object, and reads it
	// where no watch shows it. Watches, and what As returns nil for, are the Applier's own.
	As func(manifest.ID) Target
	// Health asks for Result.Health, and for Notify when it changes.
	Health bool
	// Survey asks for warnings of objects that carry the mark of the owner and are neither in Objects
	// nor in Inventory. They are looked for at the first Apply of an owner that has no Problems, among
	// the kinds that it delivers or removes, which costs no request.
	Survey bool
	// Intent, if not nil, is called before the first write that would create an object that
	// Inventory does not name, with an inventory that names it too. It must store that inventory,
	// so that a crash leaves no object behind that is not in an inventory. Its error ends the Apply
	// before anything is written.
	Intent func(context.Context, []manifest.ID) error
	// Held are the holds that the last Result named, as they were kept since: what is remembered of them
	// must survive a restart.
	Held []v1alpha1.Hold
	// Digest is what Applier.Digest last said of the owner in an earlier process; empty for nothing. If that is
	// still so, and this is the first Apply of the owner, nothing is written, and Result.Unchanged says so.
	Digest string
	// Progress, if not nil, counts how far the Apply has come.
	Progress *Progress
}

// Result is the outcome of a Request.
type Result struct {
	// Problems names each object that could not be applied or deleted, in the order
	// of the objects. Reasons are documented with their constants. The messages are
	// stable, so that a status does not change with every try.
	Problems []manifest.Problem
	// Warnings are not failures: the objects are delivered, but something about them is not as it
	// could be. Sorted.
	Warnings []manifest.Problem
	// Inventory is what must be remembered: everything that was requested, and what was delivered
	// before and is not gone yet.
	Inventory []manifest.ID
	// Changes lists what was done, in the order of the objects. Objects that were as they should be
	// are not in it.
	Changes []Change
	// Waiting names objects that cannot be applied yet, or are not gone yet. Notify is called when
	// that changes, unless a Problem or Warning says that it cannot be watched.
	Waiting []manifest.ID
	// Lingering has, of the Namespaces in Waiting that are being deleted, what they wait for themselves, in
	// the words of their conditions. They say so later: Unseen is set.
	Lingering map[manifest.ID]string
	// Unseen: something that is waited for, or that was delivered, cannot be watched, so Notify is
	// not called for it. The owner has to look again from time to time.
	Unseen bool
	// Unannounced: a kind that is waited for is in a group that no CustomResourceDefinition
	// defines. One may be created, and Notify is called then; but an aggregated API server may be
	// meant to serve the kind, of which Notify is not called. The owner has to look again every few
	// minutes to find out.
	Unannounced bool
	// Held names the objects that an ApplicationRollback holds. An object that is left as it is, because
	// nothing else is wanted of it since it was held, counts as applied. Sorted. What ends a hold is
	// seen as a change of the object or of the rollback, and Notify is called; where rollbacks may not be
	// watched, Unseen is set.
	Held []v1alpha1.Hold
	// Unchanged: all objects, also those of the last Watch, are as Request.Digest says.
	Unchanged bool
	// Health of the requested objects; zero unless it was asked for.
	Health health.Summary
	// Err is set if the cluster as a whole failed: it is unreachable or refuses the credentials, or
	// ctx ended. Not everything may have been tried; a later Apply continues where this one
	// stopped.
	Err error
}

// Action is what was done to an object.
type Action string

const (
	// Created: the object did not exist.
	Created Action = "Created"
	// Configured: the object was changed to what is wanted now.
	Configured Action = "Configured"
	// Corrected: the object was changed back, because another client had changed it.
	Corrected Action = "Corrected"
	// Recreated: the object was deleted, because a field of it cannot be changed, and created again, or is
	// created as soon as it is gone.
	Recreated Action = "Recreated"
	// Deleted: the deletion of the object was requested, because it is no longer wanted.
	Deleted Action = "Deleted"
	// Released: the object is no longer wanted but stays: its prune annotation says so, it belongs
	// to another owner by now, or it defines the kind or is the Namespace of such an object.
	Released Action = "Released"
)

// Change is one thing that was done.
type Change struct {
	ID     manifest.ID
	Action Action
	// Again: the object that was Created, or Recreated, had been applied in the same way before, and was deleted
	// by another client.
	Again bool
}
