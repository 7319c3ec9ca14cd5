package convert

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/application"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/manifests"
)

// source is an object to convert, and where it was found.
type source struct {
	object *unstructured.Unstructured
	place  string // file and line; empty for an object in the cluster
}

// String returns the object with its place.
func (s source) String() string {
	name := application.Name(client.ObjectKeyFromObject(s.object))
	if s.place != "" {
		return s.place + ": " + name
	}
	return name
}

// find reads the Applications that the command line means. It is an error if there are none.
func (o *options) find(ctx context.Context, names []string) ([]source, error) {
	if len(o.files) > 0 {
		return o.fromFiles()
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return nil, err
	}
	found, err := o.fromCluster(ctx, target, names)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("cluster %s offers no Applications of %s: -f reads them from a file", target.Name(), oldKind.GroupVersion())
	}
	if err != nil {
		return nil, target.Explain(err)
	}
	return found, nil
}

func (o *options) fromFiles() ([]source, error) {
	set, err := manifests.Read(o.files, o.env.In)
	if err != nil {
		return nil, err
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	var found []source
	for _, object := range set.Objects {
		if object.GroupVersionKind() != oldKind {
			o.others = append(o.others, source{object: object.Unstructured, place: object.Place()})
			continue
		}
		found = append(found, source{object: object.Unstructured, place: object.Place()})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the files hold no Application of %s", oldKind.GroupVersion())
	}
	if others := len(o.others); others > 0 {
		o.env.Warnf("objects of other kinds are left out: %d", others)
	}
	return found, nil
}

func (o *options) fromCluster(ctx context.Context, target *fleet.Cluster, names []string) ([]source, error) {
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.env.Namespace()
	if err != nil {
		return nil, err
	}
	var found []source
	for _, name := range names {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(oldKind)
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return nil, fmt.Errorf("get Application %s: %w", name, err)
		}
		found = append(found, source{object: object})
	}
	if len(names) > 0 {
		return found, nil
	}
	if o.allNamespaces {
		namespace = ""
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(oldKind)
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Applications: %w", err)
	}
	for i := range list.Items {
		found = append(found, source{object: &list.Items[i]})
	}
	if len(found) == 0 && !o.allNamespaces {
		return nil, fmt.Errorf("no Application of %s in namespace %s: -A looks in all", oldKind.GroupVersion(), namespace)
	}
	if len(found) == 0 {
		return nil, errors.New("no Application of " + oldKind.GroupVersion().String() + " in the cluster")
	}
	return found, nil
}
