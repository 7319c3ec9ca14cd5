package ownership

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/membership"
)

var configMaps = schema.GroupKind{Kind: "ConfigMap"}

// app is an Application that lists all ConfigMaps of label app=<name>.
func app(t *testing.T, name string, change func(*v1alpha1.Application)) *membership.Application {
	t.Helper()
	a := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	a.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	a.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "ConfigMap"}}
	if change != nil {
		change(a)
	}
	compiled, err := membership.Compile(a)
	require.NoError(t, err)
	return compiled
}

// reference is one to the Application of a name, with a UID.
func reference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps.waybill.dev/v1alpha1", Kind: "Application", Name: name, UID: uid}
}

func object(change func(*tracker.Object)) *tracker.Object {
	o := &tracker.Object{
		Ref:     tracker.Ref{GroupKind: configMaps, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "settings"}},
		UID:     "uid",
		Version: "7",
		Labels:  map[string]string{"app": "web"},

		Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "web"},
	}
	if change != nil {
		change(o)
	}
	return o
}

// A57, A62, A65, A66, A70, A78-A80, C7, C8, C42: who is an owner of an object.
func TestDecide_owners(t *testing.T) {
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "foreign"}
	controller := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "controller", Controller: ptr.To(true)}
	cases := map[string]struct {
		reason   string
		app      func(*v1alpha1.Application)
		object   func(*tracker.Object)
		unwanted bool // the Application's kinds are not recorded yet
		want     []types.UID
	}{
		"component":      {reason: "it is given one", want: []types.UID{"uid-web"}},
		"owned already":  {reason: "once is enough", object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{reference("web", "uid-web")} }, want: []types.UID{"uid-web"}},
		"not recorded":   {reason: "intent comes first", unwanted: true},
		"owned, unknown": {reason: "what was given before stays", unwanted: true, object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{reference("web", "uid-web")} }, want: []types.UID{"uid-web"}},
		"of others too":  {reason: "others stay", object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{foreign} }, want: []types.UID{"foreign", "uid-web"}},
		"controlled":     {reason: "only top-level objects", object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{controller} }, want: []types.UID{"controller"}},
		"deleting app":   {reason: "it gets no more", app: func(a *v1alpha1.Application) { a.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"observing":      {reason: "it owns nothing", app: func(a *v1alpha1.Application) { a.Spec.Ownership = v1alpha1.OwnershipObserve }},
		"observing now": {reason: "what it owned is given back", app: func(a *v1alpha1.Application) { a.Spec.Ownership = v1alpha1.OwnershipObserve },
			object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{foreign, reference("web", "uid-web")} }, want: []types.UID{"foreign"}},
		"orphaned": {reason: "labels decide", object: func(o *tracker.Object) {
			o.Labels = nil
			o.Owners = []metav1.OwnerReference{reference("web", "uid-web")}
		}},
		"somebody else's": {reason: "the annotation decides", object: func(o *tracker.Object) {
			o.Annotations = map[string]string{v1alpha1.ApplicationAnnotation: "other"}
			o.Owners = []metav1.OwnerReference{reference("web", "uid-web")}
		}},
		"not listed": {reason: "components decide", app: func(a *v1alpha1.Application) { a.Spec.Components[0].Name = "other" },
			object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{reference("web", "uid-web")} }},
		"predecessor": {reason: "it is replaced", object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{reference("web", "uid-gone")} }, want: []types.UID{"uid-web"}},
		"unknown owner": {reason: "an Application of another name may be new, and not known yet",
			object: func(o *tracker.Object) { o.Owners = []metav1.OwnerReference{reference("new", "uid-new")} }, want: []types.UID{"uid-new", "uid-web"}},
		"deleting object": {reason: "it is on its way out", object: func(o *tracker.Object) { o.Deleting = true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owners := NewOwners()
			a := app(t, "web", tc.app)
			owners.Set(a)
			if !tc.unwanted {
				owners.Record(a.UID, sets.New(configMaps))
			}
			o := object(tc.object)
			d := owners.decide(o)
			got := o.Owners
			if d.reown {
				got = d.owners
			}
			var uids []types.UID
			for _, r := range got {
				uids = append(uids, r.UID)
			}
			assert.Equal(t, tc.want, uids, tc.reason)

			again := *o
			again.Owners = got
			assert.False(t, owners.decide(&again).reown, "deciding twice changes nothing more")
		})
	}
}

// C52: several that match make nothing, and are all named.
func TestDecide_contenders(t *testing.T) {
	owners := NewOwners()
	owners.Set(app(t, "web", nil))
	owners.Set(app(t, "other", nil))
	d := owners.decide(object(func(o *tracker.Object) { o.Annotations = nil }))
	assert.True(t, d.nothing())
	assert.Equal(t, []types.NamespacedName{{Namespace: "shop", Name: "other"}, {Namespace: "shop", Name: "web"}}, d.contenders)
	assert.Empty(t, owners.decide(object(nil)).contenders, "an annotation settles it")
}

// C32: marks and reference are one write, which is refused where the object is another one by
// now, or was changed.
func TestDecide_patch(t *testing.T) {
	owners := NewOwners()
	a := app(t, "web", nil)
	owners.Set(a)
	o := object(func(o *tracker.Object) { o.Annotations = nil })
	assert.True(t, owners.decide(o).nothing(), "until both can be written")
	owners.Record(a.UID, sets.New(configMaps))
	patch, err := owners.decide(o).patch(o)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata": {
		"uid": "uid", "resourceVersion": "7",
		"annotations": {"kubernetes.io/application": "web", "apps.waybill.dev/injected": "web"},
		"labels": {"app.kubernetes.io/part-of": "web"},
		"ownerReferences": [{"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "Application", "name": "web", "uid": "uid-web", "controller": false, "blockOwnerDeletion": false}]
	}}`, string(patch))
	assert.True(t, json.Valid(patch))
}

// The Pod of a health check is no component, whatever its labels.
func TestDecide_leavesHealthChecksAlone(t *testing.T) {
	owners := NewOwners()
	a := app(t, "web", func(a *v1alpha1.Application) { a.Spec.Components[0].Kind = "Pod" })
	owners.Set(a)
	owners.Record(a.UID, sets.New(schema.GroupKind{Kind: "Pod"}))
	pod := object(func(o *tracker.Object) {
		o.Kind = "Pod"
		o.Labels[v1alpha1.HealthCheckLabel] = "web"
		o.Owners = []metav1.OwnerReference{reference("web", "uid-web")}
	})
	assert.True(t, owners.decide(pod).nothing())
}

func TestOwners_forgetWhatIsGone(t *testing.T) {
	owners := NewOwners()
	a := app(t, "web", nil)
	owners.Set(a)
	assert.True(t, owners.Record(a.UID, sets.New(configMaps)))
	assert.False(t, owners.Record(a.UID, sets.New(configMaps)), "no more than before")
	anew := app(t, "web", func(a *v1alpha1.Application) { a.UID = "uid-anew" })
	owners.Set(anew)
	assert.Nil(t, owners.byUID(a.UID))
	assert.False(t, owners.gives(anew, configMaps), "what was recorded was another one's")
	owners.Delete(anew.Key)
	assert.Nil(t, owners.byUID(anew.UID))
	assert.False(t, owners.Record(anew.UID, sets.New(configMaps)))
}
