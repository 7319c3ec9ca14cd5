package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// adoption is what may be taken over.
type adoption int

const (
	// noAdoption: an object that we did not make stays as it is.
	noAdoption adoption = iota
	// unowned: an object that nothing else manages, because the owner asks for it.
	unowned
	// anything: also an object of another owner, because the manifest asks for it.
	anything
)

// adoptionOf returns what a manifest may take over: its annotation wins over what the owner asks for.
func adoptionOf(annotation any, owners bool) adoption {
	switch {
	case annotation == "true":
		return anything
	case annotation == nil && owners:
		return unowned
	default:
		return noAdoption
	}
}

const (
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
	// maxName is the longest name that is repeated in a message.
	maxName = 253
)

// KeeperOf returns what manages an object that has no owner annotation, for a message: a release of Helm,
// or the controller that made it. Empty if nothing does; then Request.Adopt takes it over.
func KeeperOf(object metav1.Object) string {
	annotations := object.GetAnnotations()
	if annotations[v1alpha1.OwnerAnnotation] != "" {
		return ""
	}
	if name := annotations[releaseNameAnnotation]; name != "" {
		if namespace := annotations[releaseNamespaceAnnotation]; len(name) <= maxName && len(namespace) <= maxName {
			return fmt.Sprintf("Helm release %s/%s", namespace, name)
		}
		return "a Helm release"
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return controller.Kind + " " + controller.Name
	}
	return ""
}

// adopts reports whether the object may be taken over.
func (e evidence) adopts() bool {
	switch e.adopt {
	case anything:
		return !e.lost()
	case unowned:
		return e.live.owner == "" && e.live.keeper == ""
	default:
		return false
	}
}

// adoptionHint says what to do about an object of another owner.
func (it *item) adoptionHint() string {
	if it.adopt == anything { // it was adopted, and lost
		return "its manifest asks to adopt it too: remove the annotation " + v1alpha1.AdoptAnnotation + " from one of the two, or the manifest"
	}
	return AdoptionHint
}
