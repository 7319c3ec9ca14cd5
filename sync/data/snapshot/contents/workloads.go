package contents

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var (
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	deploymentKind  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSetKind  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	jobKind         = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// templates says where workloads have the spec of their Pods.
var templates = map[schema.GroupKind][]string{
	deploymentKind:                     {"spec", "template", "spec"},
	statefulSetKind:                    {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}: {"spec", "template", "spec"},
	replicaSetKind:                     {"spec", "template", "spec"},
	{Kind: "ReplicationController"}:    {"spec", "template", "spec"},
	jobKind:                            {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:  {"spec", "jobTemplate", "spec", "template", "spec"},
}

// claimSeries are the claims of a volumeClaimTemplate: prefix and a number.
type claimSeries struct {
	prefix string
	// first and last number; of a StatefulSet that is scaled to zero, all there are.
	first, last int
	reason      string
}

// has reports whether a claim of that name is one of the series.
func (c claimSeries) has(name string) bool {
	number, ok := strings.CutPrefix(name, c.prefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && strconv.Itoa(n) == number && n >= c.first && n <= c.last
}

// findWorkloads finds what Pod templates name: those of the application's objects, and those of workloads
// that custom resources of the application control.
func (s *survey) findWorkloads(ctx context.Context) error {
	for _, key := range s.sorted() {
		if err := s.readTemplate(s.objects[key].Unstructured); err != nil {
			return err
		}
	}
	if !s.hasCustomObjects() {
		return nil
	}
	for _, kind := range []schema.GroupKind{deploymentKind, statefulSetKind} {
		err := s.list(ctx, kind.WithVersion("v1"), func(o *unstructured.Unstructured) error {
			if _, ours, err := s.root(ctx, o); err != nil || !ours {
				return err
			}
			return s.readTemplate(o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readTemplate records what the Pod template of an object names, if it has one.
func (s *survey) readTemplate(o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind().GroupKind()
	path, ok := templates[kind]
	if !ok {
		return nil
	}
	content, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	fields, _ := content.(map[string]any)
	spec := &corev1.PodSpec{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, spec)
	}
	if err != nil {
		return fmt.Errorf("read Pod template of %s %q in namespace %q: %w", kind.Kind, o.GetName(), s.namespace, err)
	}
	u := user{kind.Kind, o.GetName()}
	s.uses = append(s.uses, claimsOf(u, spec, "")...)
	s.uses = append(s.uses, configurationOf(u, spec)...)
	if kind == statefulSetKind {
		return s.readClaimTemplates(o)
	}
	return nil
}

// readClaimTemplates records the claims of the replicas of a StatefulSet.
func (s *survey) readClaimTemplates(o *unstructured.Unstructured) error {
	set := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set); err != nil {
		return fmt.Errorf("read StatefulSet %q in namespace %q: %w", o.GetName(), s.namespace, err)
	}
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	last := first + int(ptr.Deref(set.Spec.Replicas, 1)) - 1
	if last < first {
		first, last = 0, math.MaxInt
	}
	for _, t := range set.Spec.VolumeClaimTemplates {
		s.series = append(s.series, claimSeries{
			prefix: t.Name + "-" + set.Name + "-", first: first, last: last,
			reason: fmt.Sprintf("volumeClaimTemplate %q of StatefulSet %q", t.Name, set.Name),
		})
	}
	return nil
}
