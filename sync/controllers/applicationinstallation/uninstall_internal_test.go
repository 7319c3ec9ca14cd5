package applicationinstallation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/test/env"
)

// uninstaller is a method that only uninstalls, and keeps what it gets as installed.
type uninstaller struct {
	method
	told *[]manifest.ID
}

func (u uninstaller) uninstall(_ context.Context, p plan) acted {
	*u.told = p.inventory
	return acted{}
}

// K53, C34: an uninstall that was asked for during an install knows what that made, also if Helm's record
// of it is lost by then.
func TestUninstall_knowsWhatTheInstallBeforeItMade(t *testing.T) {
	var told []manifest.ID
	ended := make(chan struct{}, 1)
	d := &driver{
		Reconciler: &Reconciler{},
		cluster:    &cluster.Cluster{}, kernel: reconcile.NewKernel(minBackoff, maxBackoff),
		told: reconcile.NewBell[types.NamespacedName](), waker: &reconcile.Waker[ctrl.Request]{},
		acts:    reconcile.NewJobs[jobKey, acted](t.Context(), 1, func(jobKey) { ended <- struct{}{} }, nil),
		methods: map[v1alpha1.Method]method{v1alpha1.MethodHelm: uninstaller{told: &told}},
	}
	made := []manifest.ID{{Version: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "web"}}
	s := &scope{inst: &v1alpha1.ApplicationInstallation{}, session: &session{restored: true, leaving: leaving{begun: true}}, now: time.Now()}
	s.inst.Status.Application = &v1alpha1.ResolvedApplication{Method: v1alpha1.MethodHelm}
	_, done := d.perform(s, &action{kind: install, prepared: &prepared{files: &files{}}, work: func(context.Context, plan) acted { return acted{findings: findings{inventory: made}} }})
	require.False(t, done)
	env.Receive(t, ended, "the install does not end")

	outcome, err := d.uninstall(t.Context(), s)
	require.NoError(t, err)
	require.True(t, outcome.Pending)
	env.Receive(t, ended, "the uninstall does not end")
	outcome, err = d.uninstall(t.Context(), s)
	require.NoError(t, err)
	assert.False(t, outcome.Pending)
	assert.Equal(t, made, told)
}
