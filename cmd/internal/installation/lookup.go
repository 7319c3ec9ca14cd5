package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/manifest"
)

// Lookup finds what an installation refers to, first in the files, then in the clusters.
type Lookup struct {
	// Files are objects that were read from files.
	Files []manifest.Object

	// Hub holds definitions and the credentials of sources; Target holds installations and the
	// objects that their values come from. Either is nil if no cluster is to be asked.
	Hub, Target *fleet.Cluster

	// Placed says that installations are for Target, and for no other cluster: its definition must be
	// offered to it.
	Placed bool

	// Unknown is called where the facts about the cluster are not known, with the reason; they are
	// empty then. If it is nil, facts that cannot be read are an error.
	Unknown func(why string)

	// Warn warns of what is not known although the result is good without it. Required with Placed.
	Warn func(format string, args ...any)

	// Local sources need no credentials.
	Local Local

	// SystemNamespace of the hub.
	SystemNamespace string
}

// NewLookup returns a lookup for installations of the target of a place.
func NewLookup(at fleet.Place) *Lookup {
	return &Lookup{Hub: at.Hub, Target: at.Target, Placed: true, Warn: at.Warn, SystemNamespace: at.SystemNamespace}
}

// contentData is the content of a Secret or a ConfigMap.
type contentData struct {
	data        map[string][]byte
	annotations map[string]string
	labels      map[string]string
}

// definition returns the definition of that name.
func (l *Lookup) definition(ctx context.Context, name string) (*v1alpha1.ApplicationDefinition, error) {
	definition := &v1alpha1.ApplicationDefinition{}
	found, err := l.inFiles(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind), client.ObjectKey{Name: name}, definition)
	if found || err != nil {
		return definition, err
	}
	if l.Hub == nil {
		return nil, fmt.Errorf("ApplicationDefinition %s is not among the files: give its file with --definition", name)
	}
	c, err := l.Hub.Client()
	if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		return nil, fmt.Errorf("get ApplicationDefinition %s from %s, as it is not among the files: %w", name, l.Hub.Name(), l.Hub.Explain(err))
	}
	return definition, nil
}

// content returns the content of a Secret or ConfigMap; nil if it does not exist.
func (l *Lookup) content(ctx context.Context, at *fleet.Cluster, kind string, key client.ObjectKey) (*contentData, error) {
	object := newContent(kind)
	found, err := l.inFiles(corev1.SchemeGroupVersion.WithKind(kind), key, object)
	if err != nil {
		return nil, err
	}
	if found {
		return dataOf(object), nil
	}
	if at == nil {
		return nil, fmt.Errorf("%s %s is not among the files: give its file with -f", kind, key)
	}
	c, err := at.Client()
	if err != nil {
		return nil, err
	}
	err = c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s from %s, as it is not among the files: %w", kind, key, at.Name(), at.Explain(err))
	}
	return dataOf(object), nil
}

func newContent(kind string) client.Object {
	if kind == "ConfigMap" {
		return &corev1.ConfigMap{}
	}
	return &corev1.Secret{}
}

func dataOf(object client.Object) *contentData {
	content := &contentData{data: map[string][]byte{}, annotations: object.GetAnnotations(), labels: object.GetLabels()}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		for key, value := range o.Data {
			content.data[key] = []byte(value)
		}
		for key, value := range o.BinaryData {
			content.data[key] = value
		}
	case *corev1.Secret:
		for key, value := range o.Data {
			content.data[key] = value
		}
		for key, value := range o.StringData { // only objects from files have it
			content.data[key] = []byte(value)
		}
	}
	return content
}

// inFiles reads an object from the files. An object in a file that names no namespace matches any.
func (l *Lookup) inFiles(kind schema.GroupVersionKind, key client.ObjectKey, into any) (bool, error) {
	for _, object := range l.Files {
		if object.GroupVersionKind() != kind || object.GetName() != key.Name || object.GetNamespace() != "" && object.GetNamespace() != key.Namespace {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return false, fmt.Errorf("%s: %s %s: %w", object.File, kind.Kind, key.Name, err)
		}
		return true, nil
	}
	return false, nil
}
