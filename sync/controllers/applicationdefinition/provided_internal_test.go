package applicationdefinition

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// K2: where an application that clusters are given is missing is said by its definition, in bounds.
func TestUnprovided_listsClusters(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	at := func(name string, uid types.UID, problem string) v1alpha1.KubernetesCluster {
		kc := v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		kc.Status.Provided = []v1alpha1.ProvidedDefinition{{Name: "web", UID: uid, Problem: problem}, {Name: "other", UID: "2", Problem: "no"}}
		return kc
	}
	found := unprovided(definition, []v1alpha1.KubernetesCluster{at("b", "1", "refused"), at("a", "1", "taken"), at("c", "1", ""), at("d", "0", "of another one")})
	assert.Equal(t, []v1alpha1.UnprovidedCluster{{Cluster: "team/a", Problem: "taken"}, {Cluster: "team/b", Problem: "refused"}}, found)

	var many []v1alpha1.KubernetesCluster
	for i := range 30 {
		many = append(many, at(fmt.Sprintf("c%02d", i), "1", "refused"))
	}
	assert.Len(t, unprovided(definition, many), 20)
}

// K2: a definition is looked at again when a cluster says something else about it.
func TestProvisionChanged_namesDefinitions(t *testing.T) {
	before := []v1alpha1.ProvidedDefinition{{Name: "same", Problem: "no"}, {Name: "mended", Problem: "no"}, {Name: "gone", Problem: "no"}, {Name: "well"}}
	after := []v1alpha1.ProvidedDefinition{{Name: "same", Problem: "no"}, {Name: "mended"}, {Name: "broken", Problem: "no"}, {Name: "fine"}}
	names := provisionChanged(before, after)
	slices.Sort(names)
	assert.Equal(t, []string{"broken", "gone", "mended"}, names)
}
