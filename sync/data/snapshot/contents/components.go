package contents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

var (
	applicationKind  = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind()
	installationKind = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind).GroupKind()
	claimKind        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	podKind          = schema.GroupKind{Kind: "Pod"}
	configMapKind    = schema.GroupKind{Kind: "ConfigMap"}
	secretKind       = schema.GroupKind{Kind: "Secret"}
	accountKind      = schema.GroupKind{Kind: "ServiceAccount"}
)

// derived are kinds whose objects are made from others, and why no snapshot holds them.
var derived = map[schema.GroupKind]string{
	{Kind: "Event"}:                                      "events come and go",
	{Group: "events.k8s.io", Kind: "Event"}:              "events come and go",
	{Group: "coordination.k8s.io", Kind: "Lease"}:        "a running process holds it",
	{Group: "apps", Kind: "ControllerRevision"}:          "the workload makes another one",
	{Group: "metrics.k8s.io", Kind: "PodMetrics"}:        "it is measured",
	{Group: snapshotGroup, Kind: "VolumeSnapshot"}:       isSnapshot,
	{Group: groupGroup, Kind: "VolumeGroupSnapshot"}:     isSnapshot,
	{Group: v1alpha1.Group, Kind: "ApplicationSnapshot"}: isSnapshot,
	{Group: v1alpha1.Group, Kind: "ApplicationRollback"}: isSnapshot,
	{Group: v1alpha1.Group, Kind: "StatefulApplication"}: isSnapshot,
	{Group: v1alpha1.Group, Kind: "ExecutionHook"}:       isSnapshot,
}

const (
	snapshotGroup = "snapshot.storage.k8s.io"
	groupGroup    = "groupsnapshot.storage.k8s.io"
	// rootCA is a ConfigMap that every namespace has.
	rootCA     = "kube-root-ca.crt"
	isSnapshot = "it says what is done with the application, and is no part of it"
)

// unwanted returns why no snapshot holds an object; empty if one may.
func unwanted(o *unstructured.Unstructured) string {
	kind := o.GroupVersionKind().GroupKind()
	if why := derived[kind]; why != "" {
		return why
	}
	if o.GetDeletionTimestamp() != nil && kind != claimKind {
		return "it is being deleted"
	}
	switch kind {
	case secretKind:
		switch t, _, _ := unstructured.NestedString(o.Object, "type"); corev1.SecretType(t) {
		case corev1.SecretTypeServiceAccountToken:
			return "it is the token of a ServiceAccount, which is valid for that one only"
		case "helm.sh/release.v1":
			return "it is the history of a Helm release, which Helm writes"
		}
	case configMapKind:
		if o.GetName() == rootCA {
			return "it is in every namespace"
		}
	case accountKind:
		if o.GetName() == defaultAccount {
			return "it is in every namespace"
		}
	case schema.GroupKind{Kind: "Endpoints"}:
		_, triggered := o.GetAnnotations()["endpoints.kubernetes.io/last-change-trigger-time"]
		if triggered || o.GetLabels()["endpoints.kubernetes.io/managed-by"] != "" {
			return "it is made from a Service"
		}
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		if strings.HasSuffix(o.GetLabels()["endpointslice.kubernetes.io/managed-by"], ".k8s.io") {
			return "it is made from a Service"
		}
	}
	return ""
}

// findComponents adds the components of the Application, and those of Applications among them.
func (s *survey) findComponents(ctx context.Context) error {
	known := map[types.UID]bool{s.application.GetUID(): true}
	for waiting := []*unstructured.Unstructured{s.application}; len(waiting) > 0; waiting = waiting[1:] {
		if err := s.findComponentsOf(ctx, waiting[0]); err != nil {
			return err
		}
		for _, key := range s.sorted() {
			if o := s.objects[key].Unstructured; key.GroupKind == applicationKind && !known[o.GetUID()] {
				known[o.GetUID()] = true
				waiting = append(waiting, o)
			}
		}
	}
	return nil
}

func (s *survey) findComponentsOf(ctx context.Context, object *unstructured.Unstructured) error {
	app, member, err := compile(object)
	if err != nil {
		return fmt.Errorf("Application %q in namespace %q: %w", object.GetName(), s.namespace, err) //nolint:staticcheck // a kind
	}
	s.members.Set(member)
	s.applications = append(s.applications, member)
	kinds := map[schema.GroupKind]bool{}
	for _, c := range app.Spec.Components {
		kinds[schema.GroupKind{Group: c.Group, Kind: c.Kind}] = true
	}
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return compare(id{GroupKind: a}, id{GroupKind: b}) }) {
		if err := s.findComponentsOfKind(ctx, member, kind, app.Spec.Selector); err != nil {
			return err
		}
	}
	for _, c := range app.Spec.Components {
		key := id{schema.GroupKind{Group: c.Group, Kind: c.Kind}, c.Name}
		if _, found := s.objects[key]; !found && c.Name != "" && key.GroupKind != podKind {
			s.miss(key, fmt.Sprintf("component of Application %q: does not exist, or belongs to another one", app.Name))
		}
	}
	return nil
}

// findComponentsOfKind adds the components of one kind. Pods are found later.
func (s *survey) findComponentsOfKind(ctx context.Context, member *membership.Application, kind schema.GroupKind, labels *metav1.LabelSelector) error {
	if why := derived[kind]; why != "" || kind == podKind {
		return nil
	}
	mapping, err := s.Mapper.RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		s.miss(id{GroupKind: kind}, fmt.Sprintf("kind of components of Application %q: the cluster does not serve it", member.Key.Name))
		return nil
	case err != nil:
		return fmt.Errorf("find kind %s: %w", kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return nil // an Application has components in its own namespace only
	}
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil {
		return err // not possible: it was compiled
	}
	return s.list(ctx, mapping.GroupVersionKind, func(o *unstructured.Unstructured) error {
		ours, err := s.isComponent(ctx, member, o)
		if err != nil || !ours {
			return err
		}
		return s.add(o, componentOf(member))
	}, client.MatchingLabelsSelector{Selector: selector})
}

func componentOf(member *membership.Application) string {
	return fmt.Sprintf("component of Application %q", member.Key.Name)
}

// isComponent decides whether an object is a component, as the Application controller does, which may
// not have got round to writing that onto the object.
func (s *survey) isComponent(ctx context.Context, member *membership.Application, o client.Object) (bool, error) {
	if _, check := o.GetLabels()[v1alpha1.HealthCheckLabel]; check {
		return false, nil
	}
	kind := o.GetObjectKind().GroupVersionKind().GroupKind()
	if !member.Lists(kind, o.GetName()) {
		return false, nil
	}
	name, annotated := o.GetAnnotations()[v1alpha1.ApplicationAnnotation]
	if !annotated || name != member.Key.Name && name == o.GetAnnotations()[v1alpha1.InjectedAnnotation] {
		if err := s.readOthers(ctx); err != nil { // they may claim it, too
			return false, err
		}
	}
	marked := &metav1.ObjectMeta{Namespace: s.namespace, Name: o.GetName(), Labels: o.GetLabels(), Annotations: o.GetAnnotations()}
	membership.Decide(s.members, kind, marked).Apply(marked)
	return marked.Annotations[v1alpha1.ApplicationAnnotation] == member.Key.Name && member.Matches(kind, marked), nil
}

// readOthers adds all Applications of the namespace to members, once. Those that are invalid claim
// nothing.
func (s *survey) readOthers(ctx context.Context) error {
	if s.allMembers {
		return nil
	}
	s.allMembers = true
	return s.list(ctx, v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind), func(o *unstructured.Unstructured) error {
		if _, member, err := compile(o); err == nil {
			s.members.Set(member)
		}
		return nil
	})
}

func compile(o *unstructured.Unstructured) (*v1alpha1.Application, *membership.Application, error) {
	app := &v1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, app); err != nil {
		return nil, nil, err
	}
	member, err := membership.Compile(app)
	return app, member, err
}
