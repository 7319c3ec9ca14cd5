package application

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
)

// Name returns the name of an Application for people, with its namespace if it has one.
func Name(key client.ObjectKey) string {
	name := v1alpha1.ApplicationKind + "/" + key.Name
	if key.Namespace == "" {
		return name
	}
	return name + " in " + key.Namespace
}

// Create creates an Application and returns the outcome: created, or there already with the same
// spec. An existing one with another spec is an error, and left alone.
func Create(ctx context.Context, c client.Client, app *v1alpha1.Application, options ...client.CreateOption) (outcome string, err error) {
	err = c.Create(ctx, app.DeepCopy(), append(options, client.FieldOwner(cli.FieldManager))...)
	if err == nil {
		return "created", nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create: %w", err)
	}
	there := &v1alpha1.Application{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(app), there); err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	if !apiequality.Semantic.DeepEqual(there.Spec, app.Spec) {
		return "", errors.New("there is one with another spec, which is left as it is: apply the manifest to replace it")
	}
	return "is there already", nil
}
