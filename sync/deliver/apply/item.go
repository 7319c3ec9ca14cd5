package apply

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/manifest"
)

// item is one requested object on its way into the cluster.
type item struct {
	manifest manifest.Object
	// id is the identity in the cluster. Its namespace is a guess until kind is set.
	id manifest.ID
	// body is what is applied. It shares with the manifest everything that is the same in both.
	body, metadata map[string]any
	// adopt is what may be taken over, and force what may be deleted and created again.
	adopt adoption
	force forcing

	// kind is set once it is known which resource of the API server it is.
	kind *kind
	// desired identifies body. Set by identify.
	desired digest
	// ignored are the fields that are left as others set them. Set by place.
	ignored *ignore.Pointers
	// sight is what is known of the live object. Set by outdated, completed by a
	// look-up.
	sight sight
	// blind: the object is applied only if there is none. Set by write.
	blind bool
	// applied is what was written, or left as it is because it is held; nil if nothing was.
	applied *record
	// hold is that of the object; nil if there is none, or the object was not checked for one.
	hold *v1alpha1.Hold
	outcome
}

// name returns the name that the live object has.
func (it *item) name() types.NamespacedName {
	return types.NamespacedName{Namespace: it.id.Namespace, Name: it.id.Name}
}

// shown returns the identity for a message: as long as it is not known whether the kind has namespaces,
// without the namespace that would be filled in.
func (it *item) shown() manifest.ID {
	id := it.id
	if it.kind == nil && it.manifest.Unstructured != nil {
		id.Namespace = it.manifest.GetNamespace()
	}
	return id
}

// key identifies the live object. The kind must be set.
func (it *item) key() recordKey { return recordKey{it.kind, it.name()} }

// defines returns the kind that a CustomResourceDefinition defines.
func (it *item) defines() kindName {
	group, _, _ := unstructured.NestedString(it.body, "spec", "group")
	kind, _, _ := unstructured.NestedString(it.body, "spec", "names", "kind")
	return kindName{group, kind}
}

// identity names the metadata that belongs to the API server. A manifest that was exported from a
// cluster has it, and the API server would refuse it or, worse, believe it.
var identity = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid",
}

// newItem prepares a manifest for applying: it adds the marks of the owner, and removes what the
// API server maintains itself. An error says what is wrong with the manifest; the item is returned
// all the same, for its id.
func newItem(object manifest.Object, request Request) (*item, error) {
	it := &item{manifest: object}
	if object.Unstructured == nil {
		return it, errors.New("it is empty")
	}
	it.id = object.ID()
	if it.id.Namespace == "" {
		it.id.Namespace = request.DefaultNamespace
	}
	if it.id.Kind == "" || it.id.Version == "" || it.id.Name == "" {
		return it, errors.New("it lacks apiVersion, kind or metadata.name")
	}
	it.body = maps.Clone(object.Object)
	metadata, err := copyMap(it.body, "metadata")
	if err != nil {
		return it, err
	}
	for _, field := range identity {
		delete(metadata, field)
	}
	labels, err := copyMap(metadata, "labels")
	if err != nil {
		return it, fmt.Errorf("metadata: %w", err)
	}
	annotations, err := copyMap(metadata, "annotations")
	if err != nil {
		return it, fmt.Errorf("metadata: %w", err)
	}
	it.metadata = metadata
	it.adopt = adoptionOf(annotations[v1alpha1.AdoptAnnotation], request.Adopt)
	it.force = forcingOf(annotations[v1alpha1.ForceAnnotation], request.Force)
	delete(annotations, v1alpha1.HeldByAnnotation) // which rollbacks set, and exported manifests may have
	labels[v1alpha1.OwnerHashLabel] = request.Owner.Hash()
	annotations[v1alpha1.OwnerAnnotation] = request.Owner.String()
	if it.id.Group == "" && it.id.Kind == "Secret" {
		return it, PrepareSecret(it.body)
	}
	return it, nil
}

// annotation returns an annotation of the manifest; nil if it has none of that key.
func (it *item) annotation(key string) any {
	annotations, _ := it.metadata["annotations"].(map[string]any)
	return annotations[key]
}

// place sets the kind, and the namespace now that it is known whether the kind has one.
func (it *item) place(k *kind) {
	it.kind = k
	if !k.namespaced {
		it.id.Namespace = ""
		delete(it.metadata, "namespace")
		return
	}
	it.metadata["namespace"] = it.id.Namespace
}

// identify computes the digest of the body. The JSON is not kept: for a thousand objects that are
// as they should be, that would waste a lot of memory.
func (it *item) identify() error {
	text, err := json.Marshal(it.body)
	if err != nil {
		return err
	}
	it.desired = digestOf(text)
	return nil
}

// payload returns the JSON to apply. With a uid, the API server refuses it unless the live object
// has that uid.
func (it *item) payload(uid types.UID) ([]byte, error) {
	if uid == "" {
		return json.Marshal(it.body)
	}
	return payloadFor(it.body, map[string]any{"uid": string(uid)})
}

// payloadFor returns the JSON to apply to the object of which the metadata is known.
func payloadFor(body, known map[string]any) ([]byte, error) {
	metadata, _ := body["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	maps.Copy(metadata, known)
	body = maps.Clone(body)
	body["metadata"] = metadata
	return json.Marshal(body)
}

// copyMap replaces a map inside a map with a copy, or with an empty map if there is none, and
// returns it.
func copyMap(in map[string]any, key string) (map[string]any, error) {
	var copied map[string]any
	switch value := in[key].(type) {
	case nil:
		copied = make(map[string]any)
	case map[string]any:
		if copied = maps.Clone(value); copied == nil {
			copied = make(map[string]any)
		}
	default:
		return nil, fmt.Errorf("%s is not a map", key)
	}
	in[key] = copied
	return copied, nil
}

// PrepareSecret moves stringData of a Secret into data, as the API server would. Fields are owned
// as they are applied: if we owned stringData, edits of data would go unnoticed. A value that is
// not a string is refused here, because the API server would quote it in its message.
func PrepareSecret(body map[string]any) error {
	data, err := copyMap(body, "data")
	if err != nil {
		return err
	}
	plain, err := copyMap(body, "stringData")
	if err != nil {
		return err
	}
	delete(body, "stringData")
	for key, value := range data {
		if _, ok := value.(string); !ok {
			return fmt.Errorf("data.%s is not a string", key)
		}
	}
	for key, value := range plain {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("stringData.%s is not a string", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if len(data) == 0 {
		delete(body, "data")
	}
	return nil
}
