package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/health"
)

// grown returns the tree of an Application with a Deployment, its ReplicaSet, a ConfigMap that is missing and a Service that may not
// be read.
func grown() *Tree {
	at := newClusterReader(fleet.NewHub("hub", &rest.Config{}), newWarnings())
	at.aside["old"] = "7"
	node := func(group, kind, name, version string, children ...*treeNode) *treeNode {
		n := &treeNode{Group: group, Kind: kind, Namespace: "a", Name: name, Health: health.Current, at: at, Children: children}
		if version != "" {
			n.uid, n.resourceVersion = types.UID("uid-"+name), version
		}
		return n
	}
	missing, hidden := node("", "ConfigMap", "missing", ""), node("", "Service", "hidden", "")
	missing.Health, hidden.Health = health.NotFound, health.Unknown
	return &Tree{home: at, root: node(v1alpha1.Group, v1alpha1.ApplicationKind, "shop", "1",
		node("apps", "Deployment", "web", "2", node("apps", "ReplicaSet", "web-1", "3")), missing, hidden,
		&treeNode{Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind, Namespace: "fleet", Name: "berlin"},
		node(v1alpha1.Group, v1alpha1.StatefulApplicationKind, "db", "4"),
	)}
}

func siteOf(group, kind, namespace string) Site {
	return Site{Kind: schema.GroupKind{Group: group, Kind: kind}, Namespace: namespace}
}

type objectMeta = metav1.ObjectMeta

func ownedByUID(uid types.UID, o objectMeta) objectMeta {
	o.OwnerReferences = []metav1.OwnerReference{{UID: uid}}
	return o
}

// What changes a tree: its objects, what these own or come to own, and what comes to belong to its Applications.
func TestSketch_concerns(t *testing.T) {
	s := grown().Sketch(100)
	for reason, tc := range map[string]struct {
		at     Site
		object objectMeta
		wants  bool
	}{
		"an object of the tree":                        {siteOf("apps", "Deployment", "a"), objectMeta{Name: "web"}, true},
		"another of the same kind":                     {siteOf("apps", "Deployment", "a"), objectMeta{Name: "other"}, false},
		"one of the same name elsewhere":               {siteOf("apps", "Deployment", "b"), objectMeta{Name: "web"}, false},
		"what is missing may come":                     {siteOf("", "ConfigMap", "a"), objectMeta{Name: "missing"}, true},
		"a Pod of a ReplicaSet that had none":          {siteOf("", "Pod", "a"), ownedByUID("uid-web-1", objectMeta{Name: "web-1-x"}), true},
		"a Pod of another":                             {siteOf("", "Pod", "a"), ownedByUID("uid-other", objectMeta{Name: "web-1-x"}), false},
		"what names the Application":                   {siteOf("", "ConfigMap", "a"), objectMeta{Name: "new", Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "shop"}}, true},
		"what names another":                           {siteOf("", "ConfigMap", "a"), objectMeta{Name: "new", Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "other"}}, false},
		"what names one of that name elsewhere":        {siteOf("", "ConfigMap", "b"), objectMeta{Name: "new", Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "shop"}}, false},
		"the cluster that a branch stands for":         {siteOf(v1alpha1.Group, v1alpha1.KubernetesClusterKind, "fleet"), objectMeta{Name: "berlin"}, true},
		"snapshots, whose metadata does not say whose": {siteOf(v1alpha1.Group, v1alpha1.ApplicationSnapshotKind, "a"), objectMeta{Name: "any"}, true},
	} {
		assert.Equal(t, tc.wants, s.Concerns(tc.at, &tc.object), reason)
	}
	assert.Contains(t, s.Sites, siteOf("", "Pod", "a"), "where there are none yet")
}

// What a watch lists when it begins is compared with what the tree was made of.
func TestSketch_outdated(t *testing.T) {
	s := grown().Sketch(100)
	sets, deployments := siteOf("apps", "ReplicaSet", "a"), siteOf("apps", "Deployment", "a")
	web := objectMeta{Name: "web", UID: "uid-web", ResourceVersion: "2"}
	set := ownedByUID("uid-web", objectMeta{Name: "web-1", UID: "uid-web-1", ResourceVersion: "3"})
	retired := ownedByUID("uid-web", objectMeta{Name: "web-0", UID: "old", ResourceVersion: "7"})
	with := func(o objectMeta, version string) objectMeta {
		o.ResourceVersion = version
		return o
	}
	for reason, tc := range map[string]struct {
		at    Site
		now   []objectMeta
		wants bool
	}{
		"as it was":                              {deployments, []objectMeta{web, {Name: "other", ResourceVersion: "9"}}, false},
		"modified":                               {deployments, []objectMeta{with(web, "5")}, true},
		"gone":                                   {deployments, nil, true},
		"what the tree leaves out, as it was":    {sets, []objectMeta{set, retired}, false},
		"what the tree leaves out, modified":     {sets, []objectMeta{set, with(retired, "8")}, true},
		"new, of one of its objects":             {sets, []objectMeta{set, ownedByUID("uid-web", objectMeta{Name: "web-2", UID: "new", ResourceVersion: "1"})}, true},
		"still missing":                          {siteOf("", "ConfigMap", "a"), nil, false},
		"not missing any more":                   {siteOf("", "ConfigMap", "a"), []objectMeta{{Name: "missing", ResourceVersion: "1"}}, true},
		"what could not be read, in any version": {siteOf("", "Service", "a"), []objectMeta{{Name: "hidden", ResourceVersion: "1"}}, false},
		"what could not be read, gone":           {siteOf("", "Service", "a"), nil, false},
	} {
		var now []metav1.Object
		for i := range tc.now {
			now = append(now, &tc.now[i])
		}
		assert.Equal(t, tc.wants, s.Outdated(tc.at, now), reason)
	}
}

// A tree of the same objects needs the same watches, in whatever version they are.
func TestSketch_sameObjects(t *testing.T) {
	one, other, more := grown(), grown(), grown()
	other.root.Children[0].resourceVersion = "99"
	more.root.Children = append(more.root.Children, &treeNode{Kind: "Secret", Namespace: "a", Name: "new", Health: health.NotFound, at: more.home})
	anew := grown()
	anew.root.Children[0].uid = "another"
	s := one.Sketch(100)
	assert.True(t, s.SameObjects(other.Sketch(100)))
	assert.False(t, s.SameObjects(more.Sketch(100)), "an object more")
	assert.False(t, s.SameObjects(anew.Sketch(100)), "one that was recreated owns others")
}

// A sketch is bounded, and begins with what becomes well or not.
func TestSketch_bounded(t *testing.T) {
	s := grown().Sketch(2)
	assert.True(t, s.Concerns(siteOf("apps", "Deployment", "a"), &objectMeta{Name: "web"}))
	assert.False(t, s.Concerns(siteOf("apps", "ReplicaSet", "a"), &objectMeta{Name: "web-1"}))
	sites := grown().Sketch(100).Sites
	assert.Equal(t, []string{"ConfigMap", "Service"}, []string{sites[len(sites)-2].Kind.Kind, sites[len(sites)-1].Kind.Kind}, "they only are there")
}
