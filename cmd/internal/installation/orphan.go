package installation

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// Fate is what becomes of what an installation has installed when the installation is deleted.
type Fate struct {
	// Stays says that it stays, because of spec.deletionPolicy Orphan. Otherwise it is uninstalled.
	Stays bool

	// Unheeded is why Orphan is not heeded; empty if it is, or is not set.
	Unheeded string

	// Unknown is why it is not known whether Orphan is heeded; empty if it is. Stays goes by the installation
	// alone then.
	Unknown string
}

// Fate returns what becomes of what an installation has installed when the installation is deleted. As
// waybill-sync does, it goes by the definition in the hub; by the copy in the target where that cannot be read.
func (l *Lookup) Fate(ctx context.Context, inst *v1alpha1.ApplicationInstallation) Fate {
	if inst.Spec.DeletionPolicy != v1alpha1.InstallationOrphan {
		return Fate{}
	}
	name := inst.Spec.ApplicationRef.Name
	definition, err := l.definition(ctx, name)
	if err != nil {
		if copied := copyIn(ctx, l.Target, name); copied != nil {
			definition, err = copied, nil
		}
	}
	if err != nil {
		return Fate{Stays: true, Unknown: fmt.Sprintf("it is not known whether ApplicationDefinition %s forbids Orphan: %s", name, err)}
	}
	unheeded := validation.OrphanForbiddenWarning(inst, definition)
	return Fate{Stays: unheeded == "", Unheeded: unheeded}
}

// copyIn returns a definition as a cluster has it; nil if it cannot be read.
func copyIn(ctx context.Context, cluster *fleet.Cluster, name string) *v1alpha1.ApplicationDefinition {
	if cluster == nil {
		return nil
	}
	c, err := cluster.Client()
	if err != nil {
		return nil
	}
	found := &v1alpha1.ApplicationDefinition{}
	if c.Get(ctx, client.ObjectKey{Name: name}, found) != nil {
		return nil
	}
	return found
}
