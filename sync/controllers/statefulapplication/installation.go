package statefulapplication

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// checkDefinition returns an error if the definitions have another application installed than who restores
// them was asked for.
func (w *work) checkDefinition(definitions []*unstructured.Unstructured) error {
	asked := w.content.Status.Definition
	if installed := restore.Installed(definitions); asked != "" && installed != asked {
		return kernel.Stalled(v1alpha1.SnapshotDamagedReason, "ApplicationSnapshotContent %q cannot be restored: status.definition is %q, and it holds an installation of %q",
			w.content.Name, asked, installed)
	}
	return nil
}

// installing says, to be appended to a message, what the installation waits for whose Pods are to use the
// volumes; empty if that is not known.
func (w *work) installing(ctx context.Context) string {
	last := w.plan.Last
	if last.GetKind() != v1alpha1.ApplicationInstallationKind {
		return ""
	}
	inst := &v1alpha1.ApplicationInstallation{}
	if err := w.Reader.Get(ctx, client.ObjectKeyFromObject(last), inst); err != nil || conditions.IsReady(inst) {
		return ""
	}
	if message := conditions.GetMessage(inst, v1alpha1.ReadyCondition); message != "" {
		return fmt.Sprintf(", which Pods of ApplicationInstallation %q use: %s", inst.Name, message)
	}
	return fmt.Sprintf(", which Pods of ApplicationInstallation %q use: it is not installed yet", inst.Name)
}
