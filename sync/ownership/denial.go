package ownership

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

// believed is how long what may not be written is not tried again.
const believed = 10 * time.Second

// attempt is what is written to objects of a kind, as far as rights go by that.
type attempt struct {
	kind          schema.GroupKind
	marks, owners bool
}

func attemptOf(kind schema.GroupKind, d decision) attempt {
	return attempt{kind: kind, marks: !d.marks.Empty(), owners: d.reown}
}

// denial is why something may not be written, and until when that is believed.
type denial struct {
	err   error
	until time.Time
}

// The words of API servers for rights that are missing, and in place of them, where they do not say
// it, what is to be done. The first are those of any authorizer. The second are said of Roles and
// RoleBindings, which only those may change who hold what they grant, but for their
// ownerReferences. The third are said where admission plugin OwnerReferencesPermissionEnforcement
// is on, the last of those who make an object that holds up the deletion of its owner. What is said instead is short enough for the status of one component.
var missingRights = []struct{ words, remedy string }{
	{"cannot patch resource", ""},
	{"attempting to grant RBAC permissions not currently held", "who changes it must hold what it grants: annotate it with " +
		v1alpha1.ApplicationAnnotation + " yourself, or grant the agent escalate and bind"},
	{"cannot set an ownerRef on a resource you can't delete", "who sets its ownerReferences must be allowed to delete it: grant the agent delete"},
	{"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
		"who makes it an Application's must be allowed to update applications/finalizers: grant the agent that"},
}

// lacksRight tells whether it is us who may not patch, and not the object that must not be.
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

// Denied returns an error that says which right we lack, and how to come by it, where err is about
// that; else err.
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

// denial returns why what is the same for objects of a kind is not worth a try at the moment.
func (k *Keeper) denial(a attempt) denial {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.denied[a]
	if d.err != nil && time.Now().After(d.until) {
		delete(k.denied, a)
		return denial{}
	}
	return d
}

// deny has the objects of a kind be left alone for a while: they would all be refused.
func (k *Keeper) deny(a attempt, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied[a] = denial{err: err, until: time.Now().Add(believed)}
}
