package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// C38: unless --role says otherwise, the hub has what the page says that it needs, and no more, and that is enough to
// provide a definition with `default`.
func TestCluster_leastIsEnough(t *testing.T) {
	startDriver(t)
	h, there := clientOf(t, hub(t)), clientOf(t, user(t))
	d := definition("least-"+hub(t).Namespace(t), "1.0.0")
	d.Spec.Default, d.Spec.DefaultVersion = true, "1.0.0"
	d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"least": d.Name}}
	create(t, h, d)
	got := cluster(t, "add", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn+"=true,least="+d.Name)
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "berlin: the token of the hub may read all Secrets and act as every ServiceAccount, and does not expire; an installation "+
		"without a ServiceAccount needs rights that you grant to ServiceAccount waybill-system/waybill-hub-access, or --role=cluster-admin\n")

	needed := neededRights(t)
	given := givenRights(t, there)
	assert.Empty(t, needed.Difference(given), "the page lists it, and it is not given")
	assert.Empty(t, given.Difference(needed), "it is given, and the page does not list it")
	weak := withToken(t, kept(t, "berlin").Data["value"])
	for right := range needed {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right.attributes()}}
		require.NoError(t, weak.Create(t.Context(), review))
		assert.True(t, review.Status.Allowed, "%+v", right)
	}

	inst := named(&v1alpha1.ApplicationInstallation{}, system, d.Name)
	require.Eventually(t, func() bool {
		kc := named(&v1alpha1.KubernetesCluster{}, system, "berlin")
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
		return meta.IsStatusConditionTrue(kc.Status.Conditions, v1alpha1.DefinitionsProvidedCondition)
	}, limit, often)
	require.NoError(t, there.Get(t.Context(), client.ObjectKeyFromObject(inst), inst), "it was installed with these rights")

	require.NoError(t, h.Delete(t.Context(), d))
	require.NoError(t, there.Delete(t.Context(), inst))
	got = cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	absent(t, there, accountOfTheHub()...)
}

// aRight is a permission: everywhere, or in one namespace.
type aRight struct{ group, resource, verb, namespace string }

func (r aRight) attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{Group: r.group, Resource: resource, Subresource: subresource, Verb: r.verb, Namespace: r.namespace}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// neededRights returns the rights that the table in the page of KubernetesClusters lists, those for one namespace only where
// they are not needed everywhere.
func neededRights(t *testing.T) sets.Set[aRight] {
	t.Helper()
	page, err := os.ReadFile("../../api/docs/kubernetescluster.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "\n| for | API group | resources | verbs |\n")
	require.True(t, found)
	table, _, _ := strings.Cut(after, "\n\n")
	rights := sets.New[aRight]()
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 {
			continue // what divides the heading from the rest
		}
		names, of, _ := strings.Cut(cells[2], " of ")
		namespace := ""
		switch {
		case strings.Contains(of, "kube-system"):
			namespace = metav1.NamespaceSystem
		case of != "":
			namespace = system
		}
		for _, resource := range quoted.FindAllStringSubmatch(names, -1) {
			for _, verb := range quoted.FindAllStringSubmatch(cells[3], -1) {
				rights.Insert(aRight{strings.TrimPrefix(strings.Trim(cells[1], "`"), "core"), resource[1], verb[1], namespace})
			}
		}
	}
	for r := range rights {
		if r.namespace != "" && rights.Has(aRight{r.group, r.resource, r.verb, ""}) {
			rights.Delete(r)
		}
	}
	return rights
}

// givenRights returns those that the account of the hub was given, and what Kubernetes gives to everyone of what is needed.
func givenRights(t *testing.T, c client.Client) sets.Set[aRight] {
	t.Helper()
	whole, here := named(&rbacv1.ClusterRole{}, "", "waybill-hub-access"), named(&rbacv1.Role{}, system, "waybill-hub-access")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(whole), whole))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(here), here))
	rights := sets.New(aRight{"authentication.k8s.io", "selfsubjectreviews", "create", ""})
	for namespace, rules := range map[string][]rbacv1.PolicyRule{"": whole.Rules, system: here.Rules} {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights.Insert(aRight{rule.APIGroups[0], resource, verb, namespace})
				}
			}
		}
	}
	return rights
}
