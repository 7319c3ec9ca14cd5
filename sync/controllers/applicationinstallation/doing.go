package applicationinstallation

import (
	"fmt"
	"sync/atomic"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// doing is what an install is doing, for the status of the installation while that takes long.
type doing struct {
	what    atomic.Pointer[string]
	applied apply.Progress
	shown   *reconcile.Progress[string]
}

func (d *driver) newDoing(installation types.NamespacedName) *doing {
	x := &doing{}
	x.shown = reconcile.NewProgress(x.look, func() { d.waker.Wake(ctrl.Request{NamespacedName: installation}) })
	return x
}

// say notes what the install does from now on; nothing for what needs no words.
func (x *doing) say(what string) { x.what.Store(&what) }

func (x *doing) look() string {
	if what := x.what.Load(); what != nil && *what != "" {
		return *what
	}
	if applied, all := x.applied.Counts(); all > 0 {
		return fmt.Sprintf("%s of %s are applied", excerpt.Amount(reconcile.Coarse(applied, all)), excerpt.Count(all, "object"))
	}
	return ""
}

// showInstall has the conditions say what an install is doing that takes long. A further attempt of what
// has failed leaves them as they are.
func (s *scope) showInstall(a *action) {
	what, long := a.doing.shown.Shown()
	again := a.kind == install && s.session.tried.phase() != phaseWell && s.session.installed.moved == a.prepared.moved()
	if !long || a.kind != install || again {
		return
	}
	message := installing(s.current())
	if what != "" {
		message += ": " + what
	}
	s.show(message)
}

// show has the conditions say what is done.
func (s *scope) show(message string) {
	conditions.MarkUnknown(s.inst, v1alpha1.ReadyCondition, v1alpha1.ProgressingReason, "%s", message)
	conditions.MarkReconciling(s.inst, v1alpha1.ProgressingReason, "%s", message)
}

// showFirst has the conditions of an installation that has no condition Ready yet say what is done for it.
func (s *scope) showFirst(message string) {
	if !conditions.Has(s.inst, v1alpha1.ReadyCondition) {
		s.show(message)
	}
}

func installing(app v1alpha1.ResolvedApplication) string {
	return fmt.Sprintf("installing %s %s", app.Name, app.Version)
}
