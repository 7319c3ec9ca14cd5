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

	"waybill.dev/waybill/cmd/internal/cli"
)

// accessName is the name of everything that the hub's access to a user cluster is made of there; that of
// a Secret with a token has a suffix, since each KubernetesCluster has one of its own.
const accessName = "waybill-hub-access"

// agentName is the name of the roles that the hub has for Waybill's own share, and of their bindings.
const agentName = accessName + "-agent"

// clusterAdmin is what the hub needs to install any application as itself.
const clusterAdmin = "cluster-admin"

// partOf marks what is made in a user cluster.
var partOf = map[string]string{"app.kubernetes.io/part-of": "waybill"}

// access is what the hub's access to a cluster is made of.
type access struct {
	namespace string
	// role is the ClusterRole that is bound. If it is accessName, it is made as well, and a Role in the namespace.
	role string
	// agent are the rights to install Waybill's own share, in roles of their own; nil for none.
	agent *rights
}

// least reports whether the hub gets what it needs before anything is installed, and no more.
func (a access) least() bool { return a.role == accessName }

// withAgent returns the access with the rights to install Waybill's own share, where it lacks them.
func (a access) withAgent(ctx context.Context, agent bool) (_ access, err error) {
	if agent && a.least() {
		a.agent, err = agentRights(ctx, a.namespace)
	}
	return a, err
}

// objects returns what has to be there before a token is made.
func (a access) objects() []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: accessName, Labels: partOf}},
	}
	if a.least() {
		objects = append(objects, a.granted(accessName, leastRights())...)
	}
	if a.agent != nil {
		objects = append(objects, a.granted(agentName, *a.agent)...)
		objects = append(objects, a.binding(agentName, agentName))
	}
	return append(objects, a.binding(accessName, a.role))
}

// made returns all that may be there, with the least that is needed to find it.
func (a access) made() []client.Object {
	return access{namespace: a.namespace, role: accessName, agent: &rights{}}.objects()
}

// granted returns the roles with some rights, and the binding of the one that is for the namespace.
func (a access) granted(name string, r rights) []client.Object {
	whole, here := metav1.ObjectMeta{Name: name, Labels: partOf}, metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: partOf}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: whole, Rules: r.whole},
		&rbacv1.Role{ObjectMeta: here, Rules: r.here},
		&rbacv1.RoleBinding{ObjectMeta: here, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: a.account()},
	}
}

// binding returns the one that gives the account a ClusterRole.
func (a access) binding(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: partOf},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   a.account(),
	}
}

func (a access) account() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: accessName}}
}

// amount says what the token amounts to.
func (a access) amount() string {
	switch {
	case a.role == clusterAdmin:
		return "may do everything there (ClusterRole " + clusterAdmin + "), and does not expire"
	case !a.least():
		return "may do what ClusterRole " + a.role + " says, and does not expire"
	}
	amount := "may read all Secrets and act as every ServiceAccount, and does not expire"
	if a.agent != nil {
		amount = "may read all Secrets, act as every ServiceAccount and write the roles of Waybill's own share, and does not expire"
	}
	return fmt.Sprintf("%s; an installation without a ServiceAccount needs rights that you grant to ServiceAccount %s/%s, or --role=%s",
		amount, a.namespace, accessName, clusterAdmin)
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

// ensure creates what is missing, brings what is there up to date, and prints that to w.
func (a access) ensure(ctx context.Context, in *outside, w io.Writer, dryRun bool) error {
	for _, wanted := range a.objects() {
		live := wanted.DeepCopyObject().(client.Object)
		err := in.Get(ctx, client.ObjectKeyFromObject(wanted), live)
		what := made(dryRun)
		switch {
		case apierrors.IsNotFound(err):
			if err = nil; !dryRun {
				err = in.Create(ctx, wanted, client.FieldOwner(cli.FieldManager))
			}
		case err == nil:
			what, err = a.adjust(ctx, in, live, wanted, dryRun)
		}
		if err != nil {
			return fmt.Errorf("make %s in %s: %w", describe(wanted), in.name, in.cluster.Explain(err))
		}
		tell(w, in.name, wanted, what)
	}
	if dryRun {
		return nil
	}
	return a.dropInterim(ctx, in)
}

// adjust brings what is there up to date, and returns what became of it.
func (a access) adjust(ctx context.Context, in *outside, live, wanted client.Object, dryRun bool) (string, error) {
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRoleBinding:
		if bound := live.(*rbacv1.ClusterRoleBinding); bound.RoleRef.Name != wanted.RoleRef.Name {
			return rebound(bound, dryRun), a.rebind(ctx, in, bound, wanted, dryRun)
		}
	case *rbacv1.ClusterRole:
		role := live.(*rbacv1.ClusterRole)
		before := role.DeepCopy()
		role.Rules = wanted.Rules
		return "is there", patch(ctx, in, role, before, dryRun)
	case *rbacv1.Role:
		role := live.(*rbacv1.Role)
		before := role.DeepCopy()
		role.Rules = wanted.Rules
		return "is there", patch(ctx, in, role, before, dryRun)
	}
	return "is there", nil
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
