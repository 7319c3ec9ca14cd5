package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

// What holds data is never deleted to be created again, whatever asks for it.
func TestForcing_sparesWhatHoldsData(t *testing.T) {
	for reason, tc := range map[string]struct {
		kind                schema.GroupKind
		asOwners, annotated bool
	}{
		"a volume's data goes with the claim":              {schema.GroupKind{Kind: "PersistentVolumeClaim"}, false, false},
		"a volume's data may go with it":                   {schema.GroupKind{Kind: "PersistentVolume"}, false, false},
		"all objects of a namespace go with it":            {schema.GroupKind{Kind: "Namespace"}, false, false},
		"all objects of a kind go with it":                 {crdKind, false, false},
		"a snapshot":                                       {schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}, false, false},
		"a snapshot of a group":                            {schema.GroupKind{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshot"}, false, false},
		"what an installation delivers goes with it":       {schema.GroupKind{Group: v1alpha1.Group, Kind: "ApplicationInstallation"}, false, false},
		"a Job is run again":                               {schema.GroupKind{Group: "batch", Kind: "Job"}, true, true},
		"what goes with a custom object, its author knows": {schema.GroupKind{Group: "example.com", Kind: "Widget"}, false, true},
	} {
		t.Run(reason, func(t *testing.T) {
			assert.Equal(t, tc.asOwners, forcingOf(nil, true).forces(tc.kind), "spec.force")
			assert.Equal(t, tc.annotated, forcingOf("true", false).forces(tc.kind), "the annotation")
			assert.False(t, forcingOf("false", true).forces(tc.kind), "the annotation forbids it")
		})
	}
}
