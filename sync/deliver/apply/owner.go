package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// Owner is our object on whose behalf other objects are delivered.
type Owner struct {
	// HubID is the id of the hub that the owner lives on.
	HubID string
	// Kind, Namespace and Name of the owner, for example GitSync, team-a, site.
	Kind, Namespace, Name string
}

// String returns the value of the annotation apps.waybill.dev/owner.
func (o Owner) String() string {
	return strings.Join([]string{o.HubID, o.Kind, o.Namespace, o.Name}, "/")
}

// Hash returns the value of the label apps.waybill.dev/owner-hash: 40 characters derived from
// String.
func (o Owner) Hash() string {
	sum := sha256.Sum256([]byte(o.String()))
	return hex.EncodeToString(sum[:20])
}

// ObjectKey returns the name of the owner in its cluster.
func (o Owner) ObjectKey() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// OwnerOf returns the owner of a live object according to its annotation. It returns false if the
// object has no such annotation, or one that Waybill did not write.
func OwnerOf(object metav1.Object) (Owner, bool) {
	return parseOwner(object.GetAnnotations()[v1alpha1.OwnerAnnotation])
}

func parseOwner(mark string) (Owner, bool) {
	parts := strings.Split(mark, "/")
	if len(parts) != 4 || slices.Contains(parts[:2], "") || parts[3] == "" {
		return Owner{}, false
	}
	return Owner{HubID: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, true
}

// Describe describes whose a live object is, as o sees it.
func (o Owner) Describe(object metav1.Object) string {
	return o.describe(observe(object, false).live, nil)
}

// describe describes whose a live object is, as o sees it.
func (o Owner) describe(l *live, managers []string) string {
	if l.owner == "" && l.keeper != "" {
		return "it belongs to " + l.keeper
	}
	return o.describeOwner(l.owner, managers)
}

// describeOwner describes whose a live object is, as o sees it: mark is the owner annotation of the
// object, managers are those who wrote its fields.
func (o Owner) describeOwner(mark string, managers []string) string {
	if mark == "" {
		if len(managers) == 0 {
			return "it exists and Waybill did not make it"
		}
		return "it exists and Waybill did not make it; its fields are managed by " + strings.Join(managers, ", ")
	}
	owner, ok := parseOwner(mark)
	if !ok {
		return fmt.Sprintf("it belongs to %q", mark)
	}
	who := fmt.Sprintf("it belongs to %s %s", owner.Kind, owner.ObjectKey())
	if owner.HubID != o.HubID {
		who += " of hub " + owner.HubID
	}
	return who
}
