package diff

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// as returns the delivery of a GitSync to a cluster, by the identity that it acts as there.
// Where the user may not impersonate that, the rights of the user are used instead, with a warning.
func (j *job) as(ctx context.Context, d delivery, gs *v1alpha1.GitSync, cluster *fleet.Cluster) (delivery, error) {
	d.cluster, d.acting, d.standIn = cluster, false, true
	if gs.Spec.ServiceAccountName == "" && gs.Namespace == j.SystemNamespace {
		return d, nil // Waybill's own identity
	}
	view, acting, err := j.actingAs(ctx, cluster, gs.Namespace, cmp.Or(gs.Spec.ServiceAccountName, "default"))
	if acting {
		d.cluster, d.acting, d.standIn = view, true, false
	}
	return d, err
}

// actingAs returns a cluster as a ServiceAccount sees it and true, or as the user does and false, with
// a warning, if the user may not impersonate the ServiceAccount.
func (j *job) actingAs(ctx context.Context, cluster *fleet.Cluster, namespace, account string) (*fleet.Cluster, bool, error) {
	allowed, err := mayImpersonate(ctx, cluster, namespace, account)
	if err != nil {
		return cluster, false, err
	}
	if !allowed || j.Impersonated {
		j.Warn("compared in %s with your rights, and not with those of ServiceAccount %s/%s, which you may not impersonate: it may be refused what you are not",
			cluster.Name(), namespace, account)
		return cluster, false, nil
	}
	return cluster.As("system:serviceaccount:" + namespace + ":" + account), true, nil
}

// actAs has what follows for an installation done as the ServiceAccount that it acts as; empty for
// Waybill's own identity, which the user stands in for.
func (j *job) actAs(ctx context.Context, inst *v1alpha1.ApplicationInstallation, account string) (err error) {
	j.acting, j.account = j.Target, account
	if account != "" {
		j.acting, _, err = j.actingAs(ctx, j.Target, inst.Namespace, account)
	}
	return err
}

// mayImpersonate asks whether the user may act as a ServiceAccount.
func mayImpersonate(ctx context.Context, cluster *fleet.Cluster, namespace, account string) (bool, error) {
	api, err := cluster.Client()
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: account},
	}}
	if err := api.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask for the right to impersonate: %w", cluster.Explain(err))
	}
	return review.Status.Allowed, nil
}

// lacksRight is how an API server says that a user lacks a right.
var lacksRight = regexp.MustCompile(`: User "[^"]*" cannot [a-z]+ resource `)

// isOwnRight reports whether a request was refused for want of rights, and not by admission.
func isOwnRight(err error) bool {
	return apierrors.IsForbidden(err) && lacksRight.MatchString(err.Error())
}
