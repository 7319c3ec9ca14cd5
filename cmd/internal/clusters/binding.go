package clusters

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/cli"
)

// interimName is the name of the binding that gives the account its rights while that of accessName is replaced.
const interimName = accessName + "-interim"

// bound returns the access with the ClusterRole that the account has in the cluster, or was about to get; if it
// has none, as it is.
func (a access) bound(ctx context.Context, in *outside) (access, error) {
	for _, name := range []string{interimName, accessName} {
		live := &rbacv1.ClusterRoleBinding{}
		err := in.Get(ctx, client.ObjectKey{Name: name}, live)
		if err == nil {
			a.role = live.RoleRef.Name
			return a, nil
		}
		if !apierrors.IsNotFound(err) {
			return a, fmt.Errorf("get ClusterRoleBinding %s in %s: %w", name, in.name, in.cluster.Explain(err))
		}
	}
	return a, nil
}

// rebind replaces a binding by one to another ClusterRole: which one it is to cannot be changed. Another binding
// bridges the gap, since the hub would lose its watches in it; if this ends half way, it is still there, and
// the next time is the end of it.
func (a access) rebind(ctx context.Context, in *outside, live, wanted *rbacv1.ClusterRoleBinding, dryRun bool) error {
	if dryRun {
		return nil
	}
	if err := a.dropInterim(ctx, in); err != nil {
		return err
	}
	if err := in.Create(ctx, a.binding(interimName, wanted.RoleRef.Name), client.FieldOwner(cli.FieldManager)); err != nil {
		return err
	}
	err := in.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.UID)})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return in.Create(ctx, wanted, client.FieldOwner(cli.FieldManager))
}

// dropInterim deletes the binding that bridged a gap, if there is one.
func (a access) dropInterim(ctx context.Context, in *outside) error {
	interim := a.binding(interimName, a.role)
	if err := in.Delete(ctx, interim); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s in %s: %w", describe(interim), in.name, in.cluster.Explain(err))
	}
	return nil
}

// rebound says what became, or would become, of a binding to another role.
func rebound(live *rbacv1.ClusterRoleBinding, dryRun bool) string {
	if dryRun {
		return "would be replaced: it binds ClusterRole " + live.RoleRef.Name
	}
	return "replaced: it bound ClusterRole " + live.RoleRef.Name
}
