package applicationdefinition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// offer is a definition as user clusters get it: everything except versions[].template. It is
// built once for all clusters, and does not change.
type offer struct {
	// body is applied to the copy, and statusBody to its status.
	body, statusBody []byte
	// versions is the summary of the versions in statusBody.
	versions string
	// schemas say what values are checked against there. They are in statusBody.
	schemas []v1alpha1.ValuesSchema
	// hash of body and schemas, and of the spec and the schemas alone.
	hash, specHash, schemasHash string
	// labels and annotations in body.
	labels, annotations map[string]string
	// selector of the clusters that get it.
	selector labels.Selector
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
		labels:      unmarked(definition.Labels),
		annotations: unmarked(definition.Annotations),
		selector:    labels.Everything(),
	}
	o.annotations[v1alpha1.CopyOfAnnotation] = hubID
	if definition.Spec.ClusterSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(definition.Spec.ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.clusterSelector: %w", err)
		}
		o.selector = selector
	}
	spec := definition.Spec.DeepCopy()
	for i := range spec.Versions {
		spec.Versions[i].Template = nil
	}
	var err error
	if o.specHash, err = hashJSON(spec); err != nil {
		return nil, fmt.Errorf("copy definition: %w", err)
	}
	o.body, err = encode(map[string]any{
		"metadata": map[string]any{"name": definition.Name, "labels": o.labels, "annotations": o.annotations},
		"spec":     spec,
	})
	if err != nil {
		return nil, err
	}
	o.schemas = definition.Status.ValuesSchemas
	if o.schemasHash, err = hashJSON(o.schemas); err != nil {
		return nil, fmt.Errorf("copy definition: %w", err)
	}
	o.hash = hash(append(o.body[:len(o.body):len(o.body)], o.schemasHash...))
	o.versions = summarize(spec.Versions)
	status := map[string]any{"versions": o.versions}
	if len(o.schemas) > 0 {
		status["valuesSchemas"] = o.schemas
	}
	o.statusBody, err = encode(map[string]any{"metadata": map[string]any{"name": definition.Name}, "status": status})
	return o, err
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

// to reports whether a cluster gets the definition, by its labels.
func (o *offer) to(kc *v1alpha1.KubernetesCluster) bool {
	return o.selector.Matches(labels.Set(kc.Labels))
}

// offers remembers the offers of definitions, so that hundreds of lanes do not each build their
// own.
type offers struct {
	mu     sync.Mutex
	byName map[string]remembered
}

type remembered struct {
	uid     types.UID
	version string
	offer   *offer
	// handed identifies the offer that the lanes were last notified of.
	handed string
}

// of returns the offer of a definition.
func (s *offers) of(definition *v1alpha1.ApplicationDefinition, hubID string) (*offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.byName[definition.Name]
	if ok && last.uid == definition.UID && last.version == definition.ResourceVersion {
		return last.offer, nil
	}
	made, err := newOffer(definition, hubID)
	if err != nil {
		return nil, err
	}
	if s.byName == nil {
		s.byName = map[string]remembered{}
	}
	s.byName[definition.Name] = remembered{uid: definition.UID, version: definition.ResourceVersion, offer: made, handed: last.handed}
	return made, nil
}

// hand reports whether the lanes have to look at the definition, because its offer or its cluster
// selector has changed since they were last notified.
func (s *offers) hand(name string, made *offer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.byName[name]
	current := made.hash + " " + made.selector.String()
	if last.handed == current {
		return false
	}
	last.handed = current
	s.byName[name] = last
	return true
}

// forget drops the offer of a definition that is gone, and reports whether there was one.
func (s *offers) forget(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.byName[name]
	delete(s.byName, name)
	return ok
}
