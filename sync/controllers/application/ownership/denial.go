package ownership

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/tracker"
)

// believed is how long writes that were denied are not tried again.
const believed = 10 * time.Second

// place is a kind in a namespace, which is how rights are granted.
type place struct {
	kind      schema.GroupKind
	namespace string
}

func placeOf(ref tracker.Ref) place { return place{ref.GroupKind, ref.Namespace} }

// denial is why writes are denied, and until when that is believed.
type denial struct {
	err   error
	until time.Time
}

// missingRights maps the words in which API servers report missing rights to a remedy that is short
// enough for the status of one component. The remedy is empty if their message says enough.
var missingRights = []struct{ words, remedy string }{
	// Any authorizer.
	{cannotPatch, ""},
	// For Roles and RoleBindings: only those who hold what they grant may change anything in them
	// except their ownerReferences.
	{"attempting to grant RBAC permissions not currently held", "changing it requires the permissions that it grants: annotate it with " +
		v1alpha1.ApplicationAnnotation + " yourself, or grant the agent escalate and bind"},
	// The admission plugin OwnerReferencesPermissionEnforcement, if it is enabled.
	{"cannot set an ownerRef on a resource you can't delete", "setting its ownerReferences requires permission to delete it: grant the agent delete"},
	// The same plugin, for users who create an object that blocks the deletion of its owner.
	{"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
		"setting its ownerReferences requires permission to update applications/finalizers: grant it to the agent"},
}

// cannotPatch is reported for a kind in a namespace; the other words are for one object.
const cannotPatch = "cannot patch resource"

// lacksRight reports whether a patch was forbidden because we lack a right, rather than because the
// object must not be patched.
func lacksRight(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	for _, missing := range missingRights {
		if strings.Contains(err.Error(), missing.words) {
			return true
		}
	}
	return false
}

// Denied returns an error that names the right that we lack, and how to get it, if that is what err
// is about; otherwise err.
func Denied(err error) error {
	if lacksRight(err) {
		return deniedError{err}
	}
	return err
}

// deniedError says which right is missing on a kind, in the same words for all of its objects.
type deniedError struct{ cause error }

func (e deniedError) Unwrap() error { return e.cause }

func (e deniedError) Error() string {
	what, who, _ := strings.Cut(e.cause.Error(), " is forbidden: ")
	what, _, _ = strings.Cut(what, ` "`)
	for _, missing := range missingRights {
		if missing.remedy != "" && strings.Contains(who, missing.words) {
			what, _, _ = strings.Cut(what, ": ")
			who = missing.remedy
		}
	}
	who, _, _ = strings.Cut(who, " in the namespace ")
	return what + " is forbidden: " + who
}

// denial returns why a write is currently not worth trying, or the zero value if it is.
func (k *Keeper) denial(at place) denial {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.denied[at]
	if d.err != nil && time.Now().After(d.until) {
		delete(k.denied, at)
		return denial{}
	}
	return d
}

// deny records that a right is missing, and schedules a retry of the object. If the right is one on
// all objects of the kind in the namespace, they are left alone for a while, as their writes would
// be denied, too.
func (k *Keeper) deny(ref tracker.Ref, err error) {
	if !strings.Contains(err.Error(), cannotPatch) {
		k.queue.AddRateLimited(ref)
		return
	}
	k.queue.AddAfter(ref, believed+time.Second)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied[placeOf(ref)] = denial{err: deniedError{err}, until: time.Now().Add(believed)}
}
