package applicationsnapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C44: the role data, as the chart has it, is enough to take snapshots of each kind, and to delete them.
func TestSnapshot_needsNoMoreThanItsRole(t *testing.T) {
	w := newWorld(t)
	w.application("data")
	const user = "waybill-data"
	w.grant(user)
	account, err := w.cluster.AddUser(user)
	require.NoError(t, err)
	w.restart(func() {
		ctx, cancel := context.WithCancel(t.Context())
		mgr, err := ctrl.NewManager(account, ctrl.Options{
			Scheme: hub.NewScheme(t), Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: ptr.To(true)},
			Client:     client.Options{Cache: &client.CacheOptions{DisableFor: uncached}},
		})
		require.NoError(t, err)
		require.NoError(t, add(ctx, mgr))
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		defer func() {
			cancel()
			assert.NoError(t, <-ended)
		}()
		hooks := hub.AwaitReady(w.World, w.take())
		for name, edit := range map[string]func(*v1alpha1.ApplicationSnapshotClass){
			"group": func(c *v1alpha1.ApplicationSnapshotClass) {
				c.VolumeGroupSnapshotClassNames = map[string]string{driver: groupClass}
			},
			"cold":   func(c *v1alpha1.ApplicationSnapshotClass) { c.Quiesce = v1alpha1.QuiesceScaleDown },
			"retain": func(c *v1alpha1.ApplicationSnapshotClass) { c.DeletionPolicy = v1alpha1.DeletionPolicyRetain },
		} {
			class := &v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Snapshotter: v1alpha1.DataHandler}
			edit(class)
			w.Create(class)
			s := hub.AwaitReady(w.World, w.snapshot(name, func(s *v1alpha1.ApplicationSnapshot) { s.Spec.SnapshotClassName = class.Name }))
			require.NoError(t, w.Client.Delete(t.Context(), s))
			w.AwaitGone(s, name)
		}
		require.NoError(t, w.Client.Delete(t.Context(), hooks))
		w.AwaitGone(hooks, hooks.Name)
	})
}

// grant gives a user the ClusterRoles of the chart's role data.
func (w *world) grant(user string) {
	w.T.Helper()
	text, err := os.ReadFile("../../../charts/waybill/files/rbac/data.yaml")
	require.NoError(w.T, err)
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		role := &rbacv1.ClusterRole{}
		err := documents.Decode(role)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(w.T, err)
		w.Create(role)
		w.Create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
		w.cluster.AwaitGranted(w.T, user, "", role.Rules...)
	}
}
