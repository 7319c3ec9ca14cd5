package events

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/tree"
)

// scope is the objects whose events are shown, by cluster.
type scope map[fleet.Site]*members

// members are the objects in one cluster.
type members struct {
	cluster *fleet.Cluster
	objects map[object]bool
}

// object identifies the object of an event.
type object struct{ group, kind, namespace, name string }

// anyGroup is the group of an object in events that name none.
const anyGroup = "*"

func newScope(all []tree.Member) scope {
	s := scope{}
	s.add(all)
	return s
}

// add adds objects.
func (s scope) add(all []tree.Member) {
	for _, m := range all {
		at := m.Cluster.Site()
		if s[at] == nil {
			s[at] = &members{cluster: m.Cluster, objects: map[object]bool{}}
		}
		for _, group := range []string{m.Group, anyGroup} {
			s[at].objects[object{group, m.Kind, m.Namespace, m.Name}] = true
		}
	}
}

// has reports whether an event is about one of the objects.
func (m *members) has(event *corev1.Event) bool { return m.objects[objectOf(event)] }

func objectOf(event *corev1.Event) object {
	about, group := event.InvolvedObject, anyGroup
	if about.APIVersion != "" {
		if gv, err := schema.ParseGroupVersion(about.APIVersion); err == nil {
			group = gv.Group
		}
	}
	return object{group, about.Kind, about.Namespace, about.Name}
}

// manyNamespaces is from how many namespaces of a cluster on the events of all are asked for at once.
const manyNamespaces = 8

// namespaces returns the namespaces that have the events. Those of cluster-scoped objects are in
// `default`.
func (m *members) namespaces() []string {
	var all []string
	for o := range m.objects {
		namespace := o.namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
