package kubernetescluster_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// gated returns a kubeconfig of the cluster that leads through a gate.
func gated(t *testing.T, c *env.Cluster) (*env.Gate, []byte) {
	t.Helper()
	gate, err := env.NewGate(c.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	kubeconfig, err := env.Kubeconfig(c.Name(), env.Via(gate, c.RESTConfig()))
	require.NoError(t, err)
	return gate, kubeconfig
}

// condition returns the status of a condition, or nothing.
func condition(kc *v1alpha1.KubernetesCluster, name string) metav1.Condition {
	if c := meta.FindStatusCondition(kc.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReady(kc *v1alpha1.KubernetesCluster) bool {
	return condition(kc, v1alpha1.ReadyCondition).Status == metav1.ConditionTrue
}

// reason says whether the cluster is not ready for that reason.
func reason(want string) func(*v1alpha1.KubernetesCluster) bool {
	return func(kc *v1alpha1.KubernetesCluster) bool {
		ready := condition(kc, v1alpha1.ReadyCondition)
		return ready.Status != metav1.ConditionTrue && ready.Reason == want
	}
}

// install creates an ApplicationInstallation in a namespace of the user cluster that goes
// with the test.
func install(t *testing.T, c client.Client, ns, name string, change ...func(*v1alpha1.ApplicationInstallation)) *v1alpha1.ApplicationInstallation {
	t.Helper()
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	for _, f := range change {
		f(inst)
	}
	require.NoError(t, c.Create(t.Context(), inst))
	return inst
}

// cleanup is the context of what is done after the test, whose own one has ended.
func cleanup(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
