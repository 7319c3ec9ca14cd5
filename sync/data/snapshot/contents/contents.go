package contents

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Object is one object that belongs to an application, and why.
type Object struct {
	*unstructured.Unstructured
	// Reason says why the object belongs to the application, for people: `component of Application
	// "mongo"`, `claim "data" of Pod "mongo-0"`.
	Reason string
}

// Claim is a PersistentVolumeClaim of an application.
type Claim struct {
	Object
	// StorageClass of the claim; empty if it has none.
	StorageClass string
	// Volume is the name of the PersistentVolume; empty as long as the claim is not bound.
	Volume string
	// Driver is the name of the CSI driver of the volume; empty if it has none, or if
	// PersistentVolumes may not be read.
	Driver string
}

// Left is an object that is not part of the contents although it was named.
type Left struct {
	v1alpha1.ObjectReference
	// Missing: it would be part of them if it existed.
	Missing bool
	// Reason says why it was named and is left out, for people.
	Reason string
}

// Contents is everything that belongs to an application. Lists are sorted. Objects have their status,
// but no managedFields.
type Contents struct {
	// Application is the Application itself.
	Application *unstructured.Unstructured
	// Objects are all other objects, without Claims. Pods are among them only if they are components and
	// nothing controls them.
	Objects []Object
	// Claims are the PersistentVolumeClaims of its Pods and of volumeClaimTemplates, also those that are
	// being deleted: as long as they are there, so is their data.
	Claims []Claim
	// Pods are those that run now, or are about to.
	Pods []corev1.Pod
	// Mounted are the names of the Pods of the namespace whose containers have not all ended, by the claims that they
	// mount: also those of other applications.
	Mounted map[string][]string
	// Installation is the ApplicationInstallation that manages the application; nil if there is none. It
	// is among Objects, too. DeliveryOf returns what it had installed.
	Installation *unstructured.Unstructured
	// Left are objects that were named and are not here.
	Left []Left
}

// ErrTooLarge: an application is larger than a snapshot may be.
var ErrTooLarge = errors.New("the application is too large")

// Finder finds the contents of applications in the cluster that Reader reads. It caches nothing.
type Finder struct {
	// Reader reads from the API server, without a cache.
	Reader client.Reader
	// Volumes reads PersistentVolumes, of which only the CSI driver is asked for: that never changes, so that a cache may
	// be behind. Default: Reader.
	Volumes client.Reader
	Mapper  meta.RESTMapper
}

// Find returns what belongs to an Application. The error is a NotFound if there is no such Application,
// ErrTooLarge, or what the API server answered.
func (f *Finder) Find(ctx context.Context, namespace, application string) (*Contents, error) {
	s := newSurvey(f, namespace)
	if err := s.start(ctx, application); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		s.findComponents, s.dropControlled, s.findWorkloads, s.findPods, s.findConfiguration, s.findRoles,
		s.findInstallation, s.dropControlled, s.findClaims, s.dropFinished, s.recordDeliveries,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s.contents(), nil
}
