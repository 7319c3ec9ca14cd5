package fleet

import (
	"context"
	"errors"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/cluster"
)

const (
	// page is how many objects are listed per request.
	page = 500
	// maxListed is how many objects a list has at most where the cluster is bounded.
	maxListed = 50_000
)

// List returns all objects of a kind that the options select. Where the cluster is bounded, more than maxListed are a
// cluster.LimitError.
func (c *Cluster) List(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for list := (&unstructured.UnstructuredList{}); ; {
		list.SetGroupVersionKind(kind)
		paged := append(slices.Clone(options), client.Limit(page), client.Continue(list.GetContinue()))
		if err := conn.client.List(ctx, list, paged...); err != nil {
			return nil, c.Explain(err)
		}
		if all = append(all, list.Items...); c.exceeds(len(all)) {
			return nil, c.tooMany(kind.Kind)
		}
		if list.GetContinue() == "" {
			return all, nil
		}
	}
}

// ListMetadata returns the metadata of the objects of a kind in a namespace, or in all if that is
// empty; what else they hold is never sent. Where the cluster is bounded, more than maxListed are a cluster.LimitError.
func (c *Cluster) ListMetadata(ctx context.Context, kind schema.GroupVersionResource, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	var all []metav1.PartialObjectMetadata
	for options := (metav1.ListOptions{LabelSelector: selector, Limit: page}); ; {
		list, err := conn.metadata.Resource(kind).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, c.Explain(err)
		}
		if all = append(all, list.Items...); c.exceeds(len(all)) {
			return nil, c.tooMany(kind.Resource)
		}
		if list.Continue == "" {
			return all, nil
		}
		options.Continue = list.Continue
	}
}

// exceeds reports whether so many objects are more than a list may have.
func (c *Cluster) exceeds(listed int) bool { return c.most > 0 && listed > c.most }

func (c *Cluster) tooMany(kind string) error {
	return &cluster.LimitError{What: "the number of " + kind + " in a list", Most: strconv.Itoa(c.most)}
}

// TooMuch reports whether an error says that a cluster has sent more than is accepted of it.
func TooMuch(err error) bool { return errors.As(err, new(*cluster.LimitError)) }

// NotListable reports whether the error of ListMetadata says nothing but that there is nothing to
// list: the kind has gone since it was discovered, or its server knows no metadata. Who looks at all
// kinds that there are leaves such a kind out; for others, it is not known what objects there are.
func NotListable(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}
