package applicationdefinition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

// offer is a definition as clusters get it. It is built once for all clusters, and does not change.
type offer struct {
	// toUsers is for user clusters, and toSeeds for seeds.
	toUsers, toSeeds form
	// versions is the summary of the versions.
	versions string
	// selector of the user clusters that get it.
	selector labels.Selector
	// going means that the definition is being deleted.
	going bool
}

// form is a definition as one sort of cluster gets it: user clusters without versions[].template, and
// seeds in full, because applications are installed from it there.
type form struct {
	// body is applied to the copy.
	body []byte
	// statusBody is applied to the status of the copy, and versions is the summary of the versions in it.
	// Both are empty for seeds, whose own controller writes the status.
	statusBody []byte
	versions   string
	// schemas say what values are checked against there. They are in statusBody; a seed learns its own.
	schemas []v1alpha1.ValuesSchema
	// hash of body and schemas, and of the body, the spec and the schemas alone.
	hash, bodyHash, specHash, schemasHash string
	// labels and annotations in body.
	labels, annotations map[string]string
	// forced is the annotation force-remove in body. A copy in a seed that has another is not as it should
	// be, nor one that has any while this is empty.
	forced string
	// inSeed says that it is for seeds.
	inSeed bool
	// adopt means that a definition which the seed has of its own becomes the copy.
	adopt bool
	// going means that the copy is to be deleted. In a seed, it is held for as long as it is in use there, and
	// is kept up to date until then.
	going bool
}

// marks are the prefixes of labels and annotations with which tools mark objects that they deliver.
// They do not deliver the copies.
var marks = []string{
	v1alpha1.Group + "/",
	"kubectl.kubernetes.io/",
	"meta.helm.sh/",
	"argocd.argoproj.io/",
	"kustomize.toolkit.fluxcd.io/",
	"helm.toolkit.fluxcd.io/",
}

func newOffer(definition *v1alpha1.ApplicationDefinition, hubID string) (*offer, error) {
	o := &offer{
		versions: summarize(definition.Spec.Versions), selector: labels.Everything(),
		going: !definition.DeletionTimestamp.IsZero(),
	}
	if definition.Spec.ClusterSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(definition.Spec.ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.clusterSelector: %w", err)
		}
		o.selector = selector
	}
	o.toSeeds.inSeed = true
	o.toSeeds.forced, o.toSeeds.going = definition.Annotations[v1alpha1.ForceRemoveAnnotation], o.going
	o.toSeeds.adopt = definition.Annotations[v1alpha1.AdoptAnnotation] == "true"
	if err := o.toSeeds.fill(definition, &definition.Spec, hubID); err != nil {
		return nil, err
	}
	spec := definition.Spec.DeepCopy()
	for i := range spec.Versions {
		spec.Versions[i].Template = nil
	}
	if err := o.toUsers.fill(definition, spec, hubID); err != nil {
		return nil, err
	}
	return o, o.toUsers.report(definition, o.versions)
}

// report builds the status of the copy.
func (f *form) report(definition *v1alpha1.ApplicationDefinition, versions string) error {
	f.versions, f.schemas = versions, definition.Status.ValuesSchemas
	var err error
	if f.schemasHash, err = hashJSON(f.schemas); err != nil {
		return fmt.Errorf("copy definition: %w", err)
	}
	f.hash = hash(append(f.body[:len(f.body):len(f.body)], f.schemasHash...))
	status := map[string]any{"versions": versions}
	if len(f.schemas) > 0 {
		status["valuesSchemas"] = f.schemas
	}
	f.statusBody, err = encode(map[string]any{"metadata": map[string]any{"name": definition.Name}, "status": status})
	return err
}

// fill builds the copy with that spec.
func (f *form) fill(definition *v1alpha1.ApplicationDefinition, spec *v1alpha1.ApplicationDefinitionSpec, hubID string) error {
	f.labels, f.annotations = unmarked(definition.Labels), unmarked(definition.Annotations)
	f.annotations[v1alpha1.CopyOfAnnotation] = hubID
	if f.forced != "" {
		f.annotations[v1alpha1.ForceRemoveAnnotation] = f.forced
	}
	var err error
	if f.specHash, err = hashJSON(spec); err != nil {
		return fmt.Errorf("copy definition: %w", err)
	}
	f.body, err = encode(map[string]any{
		"metadata": map[string]any{"name": definition.Name, "labels": f.labels, "annotations": f.annotations},
		"spec":     spec,
	})
	f.bodyHash = hash(f.body)
	f.hash = f.bodyHash
	return err
}

// encode returns the JSON of a definition that has only these fields.
func encode(fields map[string]any) ([]byte, error) {
	fields["apiVersion"], fields["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.ApplicationDefinitionKind
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("copy definition: %w", err)
	}
	return body, nil
}

// unmarked returns a copy of labels or annotations without the marks of tools.
func unmarked(in map[string]string) map[string]string {
	out := make(map[string]string, len(in)+1)
	for key, value := range in {
		if !marked(key) {
			out[key] = value
		}
	}
	return out
}

func marked(key string) bool {
	for _, prefix := range marks {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// hashJSON hashes the JSON of a value of any type, with sorted keys.
func hashJSON(value any) (string, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var plain any
	if err := json.Unmarshal(content, &plain); err != nil {
		return "", err
	}
	if content, err = json.Marshal(plain); err != nil {
		return "", err
	}
	return hash(content), nil
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// to returns what a cluster gets; nil for nothing. A seed gets every definition: its own controller
// applies the selector to its clusters.
func (o *offer) to(kc *v1alpha1.KubernetesCluster) *form {
	switch {
	case kc.IsSeed():
		return &o.toSeeds
	case o.selector.Matches(labels.Set(kc.Labels)):
		return &o.toUsers
	default:
		return nil
	}
}

// offers remembers the offers of definitions, so that hundreds of clusters do not each have their
// own built.
type offers struct{ byName keyed.Map[string, remembered] }

type remembered struct {
	uid     types.UID
	version string
	offer   *offer
	// handed identifies the offer that was last handed to the copiers.
	handed string
}

// of returns the offer of a definition.
func (s *offers) of(definition *v1alpha1.ApplicationDefinition, hubID string) (*offer, error) {
	last, ok := s.byName.Lookup(definition.Name)
	if ok && last.uid == definition.UID && last.version == definition.ResourceVersion {
		return last.offer, nil
	}
	made, err := newOffer(definition, hubID)
	if err != nil {
		return nil, err
	}
	s.byName.Change(definition.Name, func(last remembered) (remembered, bool) {
		return remembered{uid: definition.UID, version: definition.ResourceVersion, offer: made, handed: last.handed}, true
	})
	return made, nil
}

// hand reports whether the copies of a definition have to be reconciled, because its offer or its
// cluster selector has changed since it was last asked.
func (s *offers) hand(name string, made *offer) bool {
	current := fmt.Sprint(made.toUsers.hash, " ", made.toSeeds.hash, " ", made.going, " ", made.toSeeds.adopt, " ", made.selector)
	before := s.byName.Change(name, func(last remembered) (remembered, bool) {
		last.handed = current
		return last, true
	})
	return before.handed != current
}

// forget drops the offer of a definition that is gone, and reports whether there was one.
func (s *offers) forget(name string) bool {
	_, ok := s.byName.Lookup(name)
	s.byName.Drop(name)
	return ok
}
