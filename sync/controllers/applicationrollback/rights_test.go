package applicationrollback_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationrollback"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// C44: the ClusterRole of role data is all that it takes, for objects of many kinds: one that was changed
// and one that is gone of each.
func TestRollback_needsNoMoreThanItsRole(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	aparts.Store(w.Namespace, true)
	w.runAs("waybill-data")
	w.install(volumes.FirstConsumerClass)
	changed, gone := manifold("changed"), manifold("gone")
	hub.Change(w.World, w.application(), func(a *v1alpha1.Application) {
		for _, group := range []metav1.GroupKind{
			{Kind: "Service"}, {Kind: "Secret"}, {Kind: "ServiceAccount"}, {Group: "batch", Kind: "CronJob"}, {Group: "apps", Kind: "DaemonSet"},
			{Group: "apps", Kind: "Deployment"}, {Group: "policy", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
			{Group: "networking.k8s.io", Kind: "Ingress"}, {Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		} {
			a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Group: group.Group, Kind: group.Kind})
		}
	})
	for _, o := range append(changed, gone...) {
		w.Create(o)
	}
	w.write(before)
	hub.Await(w.World, w.application(), "not all components are known", func(a *v1alpha1.Application) bool {
		return len(a.Status.Installed) >= 2*len(changed)
	})
	w.snapshot("one")
	w.write(after)
	for _, o := range changed {
		hub.Change(w.World, o, func(o client.Object) { o.SetLabels(map[string]string{"app": "db", "since": "later"}) })
	}
	for _, o := range gone {
		require.NoError(t, w.Client.Delete(t.Context(), o))
		w.AwaitGone(o, o.GetName())
	}

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	for _, o := range append(changed, gone...) {
		assert.True(t, w.Exists(o, o.GetName()), "%T", o)
		assert.NotContains(t, o.GetLabels(), "since", "%T", o)
	}
	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	for _, o := range changed {
		require.True(t, w.Exists(o, o.GetName()), "%T", o)
		assert.Contains(t, o.GetLabels(), "since", "%T", o)
	}
	for _, o := range gone {
		w.AwaitGone(o, o.GetName())
	}
	require.NoError(t, w.Client.Delete(t.Context(), r))
	w.AwaitGone(r, r.Name)
}

// manifold returns an object of each kind that applications mostly consist of.
func manifold(name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name, Labels: labels()}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"of": name}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: volumes.Pod("", "").Spec}
	job := *template.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []client.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte("b")}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: ptr.To(intstr.FromInt32(1))}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}},
		&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name}}},
	}
}

// runAs runs the controller as a user with the chart's ClusterRoles of role data.
func (w *world) runAs(user string) {
	w.T.Helper()
	w.grant(user)
	account, err := w.Cluster.AddUser(user)
	require.NoError(w.T, err)
	mgr, err := ctrl.NewManager(account, ctrl.Options{
		Scheme: hub.NewScheme(w.T), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	require.NoError(w.T, err)
	live := direct(mgr)
	ctx, cancel := context.WithCancel(context.Background())
	only := func(c client.Client) client.Client {
		return &some{c, func(ns string) bool { return ns == w.Namespace }}
	}
	require.NoError(w.T, (&applicationrollback.Reconciler{
		Client: only(mgr.GetClient()), Recorder: mgr.GetEventRecorder("applicationrollback"), Live: only(live),
		Contents:    &contents.Finder{Reader: live, Mapper: mgr.GetRESTMapper()},
		Definitions: &metadata.Store{Client: live, SystemNamespace: hub.SystemNamespace},
	}).SetupWithManager(ctx, mgr))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.T.Cleanup(func() {
		cancel()
		assert.NoError(w.T, <-ended)
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
		w.Cluster.AwaitGranted(w.T, user, "", role.Rules...)
	}
}
