package applicationinstallation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/reconcile"
)

var serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// actingAs runs work with the cluster as the identity sees it that the installation acts as: the
// ServiceAccount of p, or Waybill's own. There is no way from the one to the other: if the ServiceAccount
// cannot be acted as, or lacks a right, the result says so, that of refused if nothing was begun.
//
// Only what the method reads and writes goes by it. Waybill keeps its own books with its own rights: the
// status, the inventory, the Application that describes the installation, the watches that show drift,
// and what valuesFrom names, which the installation's writer must be allowed to read.
func (d *driver) actingAs(ctx context.Context, p plan, refused func(error) acted, work func(plan) acted) acted {
	p.target, p.allRights = d.cluster, d.allRights
	if p.resolved.ServiceAccountName != "" {
		if err := d.findAccount(ctx, p); err != nil {
			return refused(err)
		}
		view, err := d.cluster.As(accountUser(p))
		if err != nil {
			return refused(err)
		}
		p.target = view
	}
	got := work(p)
	got.failure, got.err = explained(p, got.failure), explained(p, got.err)
	for _, problem := range got.problems {
		if got.err == nil {
			got.err = lacking(p, problem.Error(), got.wrong())
		}
	}
	return got
}

// findAccount returns an error if the ServiceAccount does not exist: impersonation needs none, so that
// bindings to one that is gone would go on working.
func (d *driver) findAccount(ctx context.Context, p plan) error {
	namespace, name := p.inst.Namespace, p.resolved.ServiceAccountName
	_, err := d.cluster.Metadata().Resource(serviceAccounts).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return reconcile.Failed(v1alpha1.ServiceAccountNotFoundReason,
			"%s, which the installation acts as, does not exist: create it and grant it what the installation needs, or name another one in spec.serviceAccountName",
			describeAccount(namespace, name))
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", describeAccount(namespace, name), err)
	}
	return nil
}

// accountUser returns the name by which the API server knows the ServiceAccount of a plan.
func accountUser(p plan) string {
	return "system:serviceaccount:" + p.inst.Namespace + ":" + p.resolved.ServiceAccountName
}

func describeAccount(namespace, name string) string {
	if name == "" {
		return "Waybill itself"
	}
	return "ServiceAccount " + namespace + "/" + name
}

// explained adds to an error what to do about a right that the identity of the installation lacks, or that
// Waybill lacks to act as it. Any other error stays as it is.
func explained(p plan, err error) error {
	if err == nil {
		return nil
	}
	if account := p.resolved.ServiceAccountName; account != "" && watch.IsImpersonation(err) {
		return reconcile.Failed(v1alpha1.ForbiddenReason, "%w; grant Waybill's identity in the cluster the right to impersonate %s",
			err, describeAccount(p.inst.Namespace, account))
	}
	if lacks := lacking(p, err.Error(), err); lacks != nil {
		return lacks // tried again even if it came from a template, which Helm does not tell from one that cannot render
	}
	return err
}

// lacking returns err with what to do about it if the message is that the identity of the installation lacks
// a right, and otherwise nil.
func lacking(p plan, message string, err error) error {
	if !watch.LacksRight(message) {
		return nil
	}
	if p.resolved.ServiceAccountName == "" {
		return reconcile.Failed(v1alpha1.ForbiddenReason, "%w; the installation acts as Waybill itself, which has no right to this: "+
			"set spec.serviceAccountName to a ServiceAccount that has, grant it to that user, or give that all rights, %s", err, p.allRights())
	}
	if !strings.Contains(message, fmt.Sprintf("%q", accountUser(p))) {
		return nil
	}
	return reconcile.Failed(v1alpha1.ForbiddenReason, "%w; the installation acts as %s: bind it to a Role or ClusterRole that grants this",
		err, describeAccount(p.inst.Namespace, p.resolved.ServiceAccountName))
}

// allRights says how Waybill gets all rights in the cluster.
func (d *driver) allRights() string {
	if d.cluster.UID() == d.Clusters.Local().UID() {
		return "by the value sync.clusterAdmin of its chart"
	}
	return "by `waybill cluster add " + d.cluster.Name().Name + " --role=cluster-admin`"
}

// stuck adds to an error how to get rid of an installation that cannot be uninstalled as its ServiceAccount.
func stuck(err error) error {
	return reconcile.Failed(v1alpha1.UninstallFailedReason, "%w; to leave everything in the cluster that was installed, remove the finalizer %s",
		err, v1alpha1.Finalizer)
}
