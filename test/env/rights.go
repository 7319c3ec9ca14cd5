package env

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// pollEvery is how often the API server is asked for what the control plane does by itself.
const pollEvery = 10 * time.Millisecond

// AwaitGranted waits until the API server lets a user do all of what the rules allow, in a
// namespace or, if that is empty, cluster-wide. The API server notices new roles and bindings a
// moment after they were created. Rules for paths that are no resources are not looked at.
func (c *Cluster) AwaitGranted(t testing.TB, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c.awaitAccess(t, true, user, namespace, rules)
}

// AwaitRevoked is like AwaitGranted, but waits until the API server allows nothing of it any more.
func (c *Cluster) AwaitRevoked(t testing.TB, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c.awaitAccess(t, false, user, namespace, rules)
}

func (c *Cluster) awaitAccess(t testing.TB, allowed bool, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	for _, asked := range attributes(namespace, rules) {
		spec := authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups(user), ResourceAttributes: &asked}
		err := apiwait.PollUntilContextTimeout(t.Context(), pollEvery, Limit, true, func(ctx context.Context) (bool, error) {
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			return err == nil && review.Status.Allowed == allowed, err
		})
		require.NoErrorf(t, err, "wait until the answer is %t whether %s may %+v", allowed, user, asked)
	}
}

// attributes returns a request for each combination that the rules name.
func attributes(namespace string, rules []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					asked := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group}
					asked.Resource, asked.Subresource, _ = strings.Cut(resource, "/")
					if len(rule.ResourceNames) > 0 {
						asked.Name = rule.ResourceNames[0]
					}
					all = append(all, asked)
				}
			}
		}
	}
	return all
}

// groups returns the groups of a user that rights are granted to: for a ServiceAccount those that
// the API server puts it into.
func groups(user string) []string {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return nil
	}
	namespace, _, _ := strings.Cut(account, ":")
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
}

// awaitAccount waits until a new namespace has its ServiceAccount `default`, without which no Pod
// is admitted to it.
func awaitAccount(t testing.TB, client kubernetes.Interface, namespace string) {
	t.Helper()
	err := apiwait.PollUntilContextTimeout(t.Context(), pollEvery, Limit, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	require.NoError(t, err, "wait for the ServiceAccount of namespace %s", namespace)
}
