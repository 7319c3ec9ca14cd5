package get

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/json"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
)

// asTable asks the API server for the columns that the CustomResourceDefinition declares, so that
// they are the same as kubectl's, even for kinds that this program does not know.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// reader reads our kinds from one cluster.
type reader struct {
	rest rest.Interface
	set  kinds.Set
}

func newReader(ctx context.Context, cluster *fleet.Cluster) (*reader, error) {
	set, err := kinds.Discover(ctx, cluster)
	if err != nil {
		return nil, err
	}
	config, httpClient, err := cluster.REST()
	if err != nil {
		return nil, err
	}
	gv := v1alpha1.GroupVersion
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: clientgoscheme.Codecs}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &reader{rest: client, set: set}, nil
}

// request builds the GET of a reference; false if the cluster does not offer the kind.
func (r *reader) request(ref kinds.Reference, q query) (*rest.Request, bool) {
	kind, err := r.set.Find(ref.Kind.Kind)
	if err != nil {
		return nil, false
	}
	request := r.rest.Get().Resource(kind.Resource).NamespaceIfScoped(q.namespace, kind.Namespaced && q.namespace != "")
	options := &metav1.ListOptions{LabelSelector: q.selector, FieldSelector: q.fields}
	switch {
	case q.anywhere(ref):
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", ref.Name).String()
	case ref.Name != "":
		return request.Name(ref.Name), true
	}
	return request.VersionedParams(options, metav1.ParameterCodec), true
}

// found returns NotFound for a reference with a name if there is no object of it.
func found(ref kinds.Reference, objects int) error {
	if ref.Name == "" || objects > 0 {
		return nil
	}
	return notFound(ref)
}

func notFound(ref kinds.Reference) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: ref.Kind.Resource}, ref.Name)
}

// table reads a reference as the server prints it; nil if the cluster does not offer the kind.
func (r *reader) table(ctx context.Context, ref kinds.Reference, q query) (*metav1.Table, error) {
	request, offered := r.request(ref, q)
	if !offered {
		return nil, found(ref, 0)
	}
	raw, err := send(ctx, request.Param("includeObject", string(metav1.IncludeMetadata)).SetHeader("Accept", asTable))
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, table); err != nil {
		return nil, fmt.Errorf("read table of %s: %w", ref.Kind.Resource, err)
	}
	if table.Kind != "Table" {
		return nil, fmt.Errorf("read table of %s: the API server sent a %s", ref.Kind.Resource, table.Kind)
	}
	if err := found(ref, len(table.Rows)); err != nil {
		return nil, err
	}
	return table, nil
}

// objects reads a reference as objects.
func (r *reader) objects(ctx context.Context, ref kinds.Reference, q query) ([]unstructured.Unstructured, error) {
	request, offered := r.request(ref, q)
	if !offered {
		return nil, found(ref, 0)
	}
	raw, err := send(ctx, request.SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	if ref.Name != "" && !q.anywhere(ref) {
		object := unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", ref.Kind.Singular, ref.Name, err)
		}
		return []unstructured.Unstructured{object}, nil
	}
	list := unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", ref.Kind.Resource, err)
	}
	return list.Items, found(ref, len(list.Items))
}

// send returns the body of the response, or the error that the API server reports in it.
func send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
