package main

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// application returns one of that type, whose selector is the label app.
func application(namespace, name, typ string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ApplicationSpec{
			Type: typ, Version: "1.0", Ownership: v1alpha1.OwnershipOwn,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
}

// A100: the Applications of a type, across namespaces and in one.
func TestGet_applicationsByType(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	one, two := cluster.Namespace(t), cluster.Namespace(t)
	typ := one // so that no others are found
	mysql := application(one, "mysql", typ)
	mysql.Status = v1alpha1.ApplicationStatus{Ready: metav1.ConditionUnknown, ComponentsReady: "5/6"}
	conditions.MarkFalse(mysql, v1alpha1.ReadyCondition, v1alpha1.NotHealthyReason, "one is not")
	create(t, c, mysql, application(two, "db", typ), application(one, "web", "web"))

	cases := map[string]struct {
		args []string
		want []string
	}{
		"across namespaces":  {[]string{"applications", "--type", typ, "-A"}, []string{"mysql", "db"}},
		"in one namespace":   {[]string{"applications", "--type", typ, "-n", two}, []string{"db"}},
		"without a kind":     {[]string{"--type", typ, "-n", one}, []string{"mysql"}},
		"in all clusters":    {[]string{"applications", "--type", typ, "--all-clusters"}, []string{"mysql", "db"}},
		"a type of nobody's": {[]string{"applications", "--type", typ + "x", "-A"}, nil},
		"a selector as well": {[]string{"applications", "--type", typ, "-A", "-l", "app=none"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"get", "--no-headers", "-o", "jsonpath={.items[*].metadata.name} {.clusters[*].items[*].metadata.name}"}, tc.args...)...)
			require.Equal(t, 0, got.code, got.errOut)
			assert.ElementsMatch(t, tc.want, columns(got.out + "\n")[0])
		})
	}

	got := waybill(t, cluster, "get", "applications", "--type", typ, "-n", one)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"NAME", "TYPE", "VERSION", "READY", "COMPONENTS", "AGE"}, columns(got.out)[0])
	assert.Equal(t, []string{"mysql", typ, "1.0", "False", "5/6"}, columns(got.out)[1][:5])
	kubectl, err := cluster.Kubectl(t.Context(), "", "get", "applications.apps.waybill.dev", "-n", one, "--field-selector", "spec.type="+typ)
	require.NoError(t, err)
	assert.Equal(t, columns(got.out)[0], columns(kubectl)[0], "as kubectl prints them")
	assert.Equal(t, columns(got.out)[1][:5], columns(kubectl)[1][:5])
}

func TestGet_typeIsForApplications(t *testing.T) {
	for args, want := range map[[2]string]string{
		{"gitsyncs", "-A"}:              "--type selects applications, and not gitsyncs",
		{"applications,clusters", "-A"}: "--type selects applications, and not kubernetesclusters",
		{"application", "mysql"}:        "a name and --type exclude each other",
	} {
		got := waybill(t, hub(t), append([]string{"get", "--type", "mysql"}, args[:]...)...)
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.errOut, want)
	}
}
