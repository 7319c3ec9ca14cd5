package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
)

// accessName is the name of everything that the hub's access to a user cluster is made of there; that of
// a Secret with a token has a suffix, since each KubernetesCluster has one of its own.
const accessName = "waybill-hub-access"

// clusterAdmin is what the hub needs to install any application.
const clusterAdmin = "cluster-admin"

// partOf marks what is made in a user cluster.
var partOf = map[string]string{"app.kubernetes.io/part-of": "waybill"}

// access is what the hub's access to a cluster is made of.
type access struct {
	namespace string
	// role is the ClusterRole that is bound; with least, it is made as well, and a Role in the namespace.
	role  string
	least bool
}

// objects returns what has to be there before a token is made.
func (a access) objects() []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: accessName, Labels: partOf}},
	}
	whole := metav1.ObjectMeta{Name: accessName, Labels: partOf}
	here := metav1.ObjectMeta{Namespace: a.namespace, Name: accessName, Labels: partOf}
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: accessName}}
	if a.least {
		objects = append(objects,
			&rbacv1.ClusterRole{ObjectMeta: whole, Rules: leastRules()},
			&rbacv1.Role{ObjectMeta: here, Rules: leastRulesHere()},
			&rbacv1.RoleBinding{ObjectMeta: here, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: accessName}, Subjects: account},
		)
	}
	return append(objects, &rbacv1.ClusterRoleBinding{
		ObjectMeta: whole, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.role}, Subjects: account,
	})
}

// amount says what the token amounts to.
func (a access) amount() string {
	switch {
	case a.least:
		return "may read all Secrets and act as every ServiceAccount, and does not expire; what charts consist of is for others to grant"
	case a.role == clusterAdmin:
		return "may do everything there (ClusterRole " + clusterAdmin + "), and does not expire; --least and --role give less"
	}
	return "may do what ClusterRole " + a.role + " says, and does not expire"
}

// token returns the Secret that Kubernetes fills with a token that does not expire.
func (a access) token() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, GenerateName: accessName + "-", Labels: partOf,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: accessName},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// ensure creates what is missing, and prints that to w. An existing binding to another role is an error:
// it cannot be changed.
func (a access) ensure(ctx context.Context, in *outside, w io.Writer, dryRun bool) error {
	for _, wanted := range a.objects() {
		live := wanted.DeepCopyObject().(client.Object)
		err := in.Get(ctx, client.ObjectKeyFromObject(wanted), live)
		switch {
		case apierrors.IsNotFound(err):
			if !dryRun {
				err = in.Create(ctx, wanted, client.FieldOwner(cli.FieldManager))
			} else {
				err = nil
			}
			tell(w, in.name, wanted, made(dryRun))
		case err == nil:
			err = a.adjust(ctx, in, live, wanted, dryRun)
			tell(w, in.name, wanted, "is there")
		}
		if err != nil {
			return fmt.Errorf("make %s in %s: %w", describe(wanted), in.name, in.cluster.Explain(err))
		}
	}
	return nil
}

// adjust brings what is there up to date, or refuses to.
func (a access) adjust(ctx context.Context, in *outside, live, wanted client.Object, dryRun bool) error {
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRoleBinding:
		if bound := live.(*rbacv1.ClusterRoleBinding).RoleRef.Name; bound != wanted.RoleRef.Name {
			return fmt.Errorf("it binds ClusterRole %s, not %s, and cannot be changed: delete it, or say --role=%s", bound, wanted.RoleRef.Name, bound)
		}
	case *rbacv1.ClusterRole:
		role := live.(*rbacv1.ClusterRole)
		before := role.DeepCopy()
		role.Rules = wanted.Rules
		return patch(ctx, in, role, before, dryRun)
	case *rbacv1.Role:
		role := live.(*rbacv1.Role)
		before := role.DeepCopy()
		role.Rules = wanted.Rules
		return patch(ctx, in, role, before, dryRun)
	}
	return nil
}

func patch(ctx context.Context, in *outside, role, before client.Object, dryRun bool) error {
	if dryRun {
		return nil
	}
	return in.Patch(ctx, role, client.MergeFrom(before), client.FieldOwner(cli.FieldManager))
}

// How long it may take until Kubernetes has made a token, and until it counts.
const (
	tokenWithin = 30 * time.Second
	askEvery    = 100 * time.Millisecond
)

// newToken makes a Secret with a token, and returns it once it is filled. If that fails, it leaves none.
func (a access) newToken(ctx context.Context, in *outside) (*corev1.Secret, error) {
	secret := a.token()
	if err := in.Create(ctx, secret, client.FieldOwner(cli.FieldManager)); err != nil {
		return nil, fmt.Errorf("make the Secret with the token in %s: %w", in.name, in.cluster.Explain(err))
	}
	err := wait.PollUntilContextTimeout(ctx, askEvery, tokenWithin, true, func(ctx context.Context) (bool, error) {
		err := in.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if err == nil {
		return secret, nil
	}
	if wait.Interrupted(err) {
		err = errors.New("kube-controller-manager has put no token into it")
	}
	_ = in.Delete(context.WithoutCancel(ctx), secret) // the error is that of the token
	return nil, fmt.Errorf("wait for the token in Secret %s of %s: %w", client.ObjectKeyFromObject(secret), in.name, in.cluster.Explain(err))
}

// tokens returns the Secrets with tokens of the ServiceAccount.
func (a access) tokens(ctx context.Context, in *outside) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	if err := in.List(ctx, list, client.InNamespace(a.namespace), client.MatchingLabels(partOf)); err != nil {
		return nil, fmt.Errorf("list the tokens in %s: %w", in.name, in.cluster.Explain(err))
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool {
		return s.Type != corev1.SecretTypeServiceAccountToken || s.Annotations[corev1.ServiceAccountNameKey] != accessName
	}), nil
}

// leastRules are what the hub needs in a user cluster before anything is installed in it: the table in
// api/docs/kubernetescluster.md says what for.
func leastRules() []rbacv1.PolicyRule {
	own := v1alpha1.Group
	return []rbacv1.PolicyRule{
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "get", "list", "watch", "create", "patch"),
		rule(own, []string{"applicationdefinitions"}, "get", "list", "watch", "create", "patch", "delete", "copy", "enforce", "install"),
		rule(own, []string{"applicationinstallations"}, "get", "list", "watch", "create", "update", "patch", "delete"),
		rule(own, []string{"applicationdefinitions/status", "applicationinstallations/status"}, "patch"),
		rule(own, []string{"applications"}, "get", "list", "watch", "create", "patch", "delete"),
		rule(own, []string{"applicationrollbacks", "applicationsnapshots"}, "get", "list", "watch", "create", "delete"),
		rule(own, []string{"statefulapplications", "applicationsnapshotclasses"}, "list"),
		rule("events.k8s.io", []string{"events"}, "create", "patch"),
		rule("", []string{"secrets"}, "get", "list", "watch", "create", "update", "patch", "delete"),
		rule("", []string{"configmaps"}, "get", "list", "watch"),
		rule("", []string{"namespaces"}, "get", "create", "patch", "install-into"),
		rule("", []string{"serviceaccounts"}, "impersonate"),
	}
}

// leastRulesHere are what it needs beside that in the system namespace, where the schemas of values are.
func leastRulesHere() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", []string{"configmaps"}, "create", "patch")}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// made says what became, or would become, of an object that was not there.
func made(dryRun bool) string {
	if dryRun {
		return "would be created"
	}
	return "created"
}

// tell writes a line on an object in a cluster.
func tell(w io.Writer, where string, o client.Object, what string) {
	fmt.Fprintf(w, "%s: %s %s\n", where, describe(o), what)
}

// describe names an object as kubectl would.
func describe(o client.Object) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	kind = kind[strings.LastIndex(kind, ".")+1:]
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName() + "..."
	}
	if o.GetNamespace() == "" {
		return kind + "/" + name
	}
	return kind + "/" + name + " in " + o.GetNamespace()
}
