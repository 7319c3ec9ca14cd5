package data

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

// listContents prints what belongs to an application, and why, with the rights of the user. claims is a
// label selector.
func (s *session) listContents(ctx context.Context, name, claims string) error {
	namespace, application, err := s.applicationName(ctx, name)
	if err != nil {
		return err
	}
	selector, err := labels.Parse(claims)
	if err != nil {
		return fmt.Errorf("read --claims: %w", err)
	}
	mapper, err := s.target.Mapper()
	if err != nil {
		return err
	}
	finder := &contents.Finder{Reader: s.client, Mapper: mapper}
	found, err := finder.Find(ctx, namespace, application)
	if err != nil {
		return fmt.Errorf("find what belongs to Application/%s in %s: %w", application, namespace, s.target.Explain(err))
	}
	return s.printContents(application, found, selector)
}

// printContents prints what was found: what belongs to the application, and below that what was named
// and does not.
func (s *session) printContents(application string, found *contents.Contents, claims labels.Selector) error {
	table := output.NewTable("Kind", "Name", "Volume", "Because")
	output.AddRow(table, v1alpha1.ApplicationKind, application, "", "it is the application")
	for _, object := range found.Objects {
		output.AddRow(table, kindOf(object.Unstructured), object.GetName(), "", object.Reason)
	}
	volumes := 0
	for i := range found.Claims {
		claim := &found.Claims[i]
		volume := volumeOf(claim)
		if claims.Matches(labels.Set(claim.GetLabels())) {
			volumes++
		} else {
			volume = "not selected by --claims"
		}
		output.AddRow(table, kindOf(claim.Unstructured), claim.GetName(), volume, claim.Reason)
	}
	if err := output.PrintTable(s.env.Out, table, output.TableOptions{}); err != nil {
		return err
	}
	if len(found.Left) > 0 {
		left := output.NewTable("Left out", "Name", "Because")
		for _, l := range found.Left {
			output.AddRow(left, kindName(l.Group, l.Kind), l.Name, l.Reason)
		}
		fmt.Fprintln(s.env.Out)
		if err := output.PrintTable(s.env.Out, left, output.TableOptions{}); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.env.Out, "\n%s, %s; nothing is written\n", output.Count(len(table.Rows), "object"), output.Count(volumes, "volume"))
	return nil
}

// applicationName returns the namespace and the name of the Application that is meant. It takes one that
// no StatefulApplication names, too.
func (s *session) applicationName(ctx context.Context, name string) (namespace, application string, err error) {
	stateful := &v1alpha1.StatefulApplication{}
	err = s.locate(ctx, v1alpha1.StatefulApplicationKind, name, stateful)
	if err == nil {
		return stateful.Namespace, stateful.GetApplicationName(), nil
	}
	app := &v1alpha1.Application{}
	if apierrors.IsForbidden(err) || s.locate(ctx, v1alpha1.ApplicationKind, name, app) != nil {
		return "", "", err
	}
	return app.Namespace, app.Name, nil
}

// kindOf returns the kind of an object as `kubectl` takes it.
func kindOf(object *unstructured.Unstructured) string {
	return kindName(object.GroupVersionKind().Group, object.GetKind())
}

func kindName(group, kind string) string {
	if group == "" || group == v1alpha1.Group {
		return kind
	}
	return kind + "." + group
}

// volumeOf says what is known of the volume of a claim. Its driver is known only to those who may read
// PersistentVolumes.
func volumeOf(claim *contents.Claim) string {
	if claim.Volume == "" {
		return "not bound"
	}
	size, _, _ := unstructured.NestedString(claim.Unstructured.Object, "status", "capacity", "storage")
	switch {
	case claim.Driver == "":
		return size
	case size == "":
		return claim.Driver
	}
	return size + " of " + claim.Driver
}
