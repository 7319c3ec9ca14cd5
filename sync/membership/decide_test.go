package membership_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

const (
	application = v1alpha1.ApplicationAnnotation
	injected    = v1alpha1.InjectedAnnotation
	partOf      = v1alpha1.PartOfLabel
)

var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// app is an Application of namespace a that lists every Deployment of one label.
func app(name, label, value string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec: v1alpha1.ApplicationSpec{
			Type:       "web",
			Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
			Components: []v1alpha1.ApplicationComponent{{Group: "apps", Kind: "Deployment"}},
		},
	}
}

func index(t testing.TB, apps ...*v1alpha1.Application) *membership.Index {
	t.Helper()
	x := &membership.Index{}
	for _, a := range apps {
		compiled, err := membership.Compile(a)
		require.NoError(t, err)
		x.Set(compiled)
	}
	return x
}

type values map[string]string

func object(name string, labels, annotations values) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, Labels: labels, Annotations: annotations,
	}}
}

// A19, A20, A50, A51, A54-A57, A79, C3, C52
func TestDecide_saysWhose(t *testing.T) {
	deleting := app("leaving", "app", "leaving")
	deleting.DeletionTimestamp = &metav1.Time{}
	listed := app("named", "app", "named")
	listed.Spec.Components[0].Name = "web"
	bare := app("bare", "app", "bare")
	bare.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: partOf, Operator: metav1.LabelSelectorOpDoesNotExist}}
	long := app("a-name-that-is-longer-than-any-label-can-be-which-is-63-characters", "app", "long")
	x := index(t, app("web", "app", "web"), app("blog", "app", "blog"), app("all", "tier", "all"), deleting, listed, bare, long)

	for _, c := range []struct {
		reason              string
		labels, annotations values
		wantLabels          values
		wantAnnotations     values
		warning             string
	}{
		{reason: "nobody matches", labels: values{"app": "other"},
			wantLabels: values{"app": "other"}},
		{reason: "exactly one matches", labels: values{"app": "web"},
			wantLabels: values{"app": "web", partOf: "web"}, wantAnnotations: values{application: "web", injected: "web"}},
		{reason: "a part-of label that is there stays", labels: values{"app": "web", partOf: "suite"},
			wantLabels: values{"app": "web", partOf: "suite"}, wantAnnotations: values{application: "web", injected: "web"}},
		{reason: "several match", labels: values{"app": "web", "tier": "all"},
			wantLabels: values{"app": "web", "tier": "all"}, warning: "Applications all, web all match"},
		{reason: "an explicit one wins", labels: values{"app": "web", "tier": "all"}, annotations: values{application: "all"},
			wantLabels: values{"app": "web", "tier": "all"}, wantAnnotations: values{application: "all"}},
		{reason: "an explicit none wins", labels: values{"app": "web"}, annotations: values{application: ""},
			wantLabels: values{"app": "web"}, wantAnnotations: values{application: ""}},
		{reason: "an explicit one whose selector does not match is orphaned", labels: values{"app": "web"}, annotations: values{application: "blog"},
			wantLabels: values{"app": "web"}, wantAnnotations: values{application: "blog"}, warning: "is orphaned"},
		{reason: "an explicit one that does not list it", labels: values{"app": "named"}, annotations: values{application: "named"},
			wantLabels: values{"app": "named"}, wantAnnotations: values{application: "named"}, warning: "does not list it"},
		{reason: "an explicit one that does not exist may come", labels: values{"app": "other"}, annotations: values{application: "later"},
			wantLabels: values{"app": "other"}, wantAnnotations: values{application: "later"},
			warning: "names Application later, which does not exist in namespace a: until it is created, the object belongs to no Application"},
		{reason: "an explicit one that does not exist is perhaps mistyped", labels: values{"app": "web"}, annotations: values{application: "wbe"},
			wantLabels: values{"app": "web"}, wantAnnotations: values{application: "wbe"}, warning: "its labels match web: remove the annotation"},
		{reason: "an explicit one takes the place of ours", labels: values{"app": "web", partOf: "web"}, annotations: values{application: "all", injected: "web"},
			wantLabels: values{"app": "web"}, wantAnnotations: values{application: "all"}, warning: "is orphaned"},
		{reason: "an emptied one takes the place of ours", labels: values{"app": "web", partOf: "web"}, annotations: values{application: "", injected: "web"},
			wantLabels: values{"app": "web"}, wantAnnotations: values{application: ""}},
		{reason: "labels no longer match, another one does", labels: values{"app": "blog", partOf: "web"}, annotations: values{application: "web", injected: "web"},
			wantLabels: values{"app": "blog", partOf: "blog"}, wantAnnotations: values{application: "blog", injected: "blog"}},
		{reason: "labels no longer match, nobody does", labels: values{"app": "other", partOf: "web"}, annotations: values{application: "web", injected: "web"},
			wantLabels: values{"app": "other"}, wantAnnotations: values{}},
		{reason: "labels no longer match, the label is somebody else's", labels: values{"app": "other", partOf: "suite"}, annotations: values{application: "web", injected: "web"},
			wantLabels: values{"app": "other", partOf: "suite"}, wantAnnotations: values{}},
		{reason: "labels no longer match, several do", labels: values{"app": "blog", "tier": "all"}, annotations: values{application: "web", injected: "web"},
			wantLabels: values{"app": "blog", "tier": "all"}, wantAnnotations: values{}, warning: "all, blog"},
		{reason: "ours stays when another one comes to match", labels: values{"app": "web", "tier": "all", partOf: "web"}, annotations: values{application: "web", injected: "web"},
			wantLabels: values{"app": "web", "tier": "all", partOf: "web"}, wantAnnotations: values{application: "web", injected: "web"}},
		{reason: "what somebody removed comes back", labels: values{"app": "web"}, annotations: values{injected: "web"},
			wantLabels: values{"app": "web", partOf: "web"}, wantAnnotations: values{application: "web", injected: "web"}},
		{reason: "ours does not exist: deleted, or not there yet", labels: values{"app": "other", partOf: "gone"}, annotations: values{application: "gone", injected: "gone"},
			wantLabels: values{"app": "other", partOf: "gone"}, wantAnnotations: values{application: "gone", injected: "gone"}},
		{reason: "ours does not exist and another one matches", labels: values{"app": "web", partOf: "gone"}, annotations: values{application: "gone", injected: "gone"},
			wantLabels: values{"app": "web", partOf: "web"}, wantAnnotations: values{application: "web", injected: "web"}},
		{reason: "one that is being deleted gets no new members", labels: values{"app": "leaving"},
			wantLabels: values{"app": "leaving"}},
		{reason: "one that is being deleted keeps those it has", labels: values{"app": "leaving", partOf: "leaving"}, annotations: values{application: "leaving", injected: "leaving"},
			wantLabels: values{"app": "leaving", partOf: "leaving"}, wantAnnotations: values{application: "leaving", injected: "leaving"}},
		{reason: "not the object that is listed by name", labels: values{"app": "named"},
			wantLabels: values{"app": "named"}},
		{reason: "the label is left out where it would end the match", labels: values{"app": "bare"},
			wantLabels: values{"app": "bare"}, wantAnnotations: values{application: "bare", injected: "bare"}},
		{reason: "the label is left out where it cannot hold the name", labels: values{"app": "long"},
			wantLabels: values{"app": "long"}, wantAnnotations: values{application: long.Name, injected: long.Name}},
	} {
		obj := object("other", c.labels, c.annotations)
		marks := membership.Decide(x, deployments, obj)
		if c.warning == "" {
			assert.Empty(t, marks.Warnings, c.reason)
		} else if assert.NotEmpty(t, marks.Warnings, c.reason) {
			assert.Contains(t, marks.Warnings[0], c.warning, c.reason)
		}
		marks.Apply(obj)
		assert.Equal(t, map[string]string(c.wantLabels), obj.Labels, c.reason)
		assert.Equal(t, map[string]string(c.wantAnnotations), obj.Annotations, c.reason)
		assert.True(t, membership.Decide(x, deployments, obj).Empty(), c.reason)
	}
}

// A38
func TestDecide_staysInItsNamespace(t *testing.T) {
	x := index(t, app("web", "app", "web"))
	obj := object("web", values{"app": "web"}, nil)
	obj.Namespace = "b"
	assert.True(t, membership.Decide(x, deployments, obj).Empty())
	assert.True(t, membership.Decide(x, schema.GroupKind{Kind: "Service"}, object("web", values{"app": "web"}, nil)).Empty(), "the kind is not listed")
}

func TestDecide_anApplicationIsNoPartOfItself(t *testing.T) {
	suite := app("suite", "app", "suite")
	suite.Spec.Components[0] = v1alpha1.ApplicationComponent{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind}
	x := index(t, suite)
	gk := schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind}
	assert.True(t, membership.Decide(x, gk, object("suite", values{"app": "suite"}, nil)).Empty())
	assert.False(t, membership.Decide(x, gk, object("part", values{"app": "suite"}, nil)).Empty())
}

func TestDecide_aNameThatIsYetToBeGenerated(t *testing.T) {
	listed := app("named", "app", "named")
	listed.Spec.Components[0].Name = "web"
	x := index(t, listed, app("web", "app", "web"))
	assert.Equal(t, "web", *membership.Decide(x, deployments, object("", values{"app": "web"}, nil)).Annotations[application])
	marks := membership.Decide(x, deployments, object("", values{"app": "named"}, values{application: "named"}))
	assert.Empty(t, marks.Warnings, "it may turn out to be the one that is listed")
}

// C52: what no user chose an Application for is claimed by those that match, whichever it was injected
// for; the label that was injected with that does not count.
func TestClaims(t *testing.T) {
	bare := app("bare", "app", "web")
	bare.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: partOf, Operator: metav1.LabelSelectorOpDoesNotExist}}
	named := app("named", "app", "web")
	named.Spec.Components[0].Name = "other"
	x := index(t, app("web", "app", "web"), bare, named)
	for _, c := range []struct {
		reason              string
		app                 string
		labels, annotations values
		want                bool
	}{
		{"it names none", "web", values{"app": "web"}, nil, true},
		{"its labels do not match", "web", values{"app": "other"}, nil, false},
		{"another object is listed", "named", values{"app": "web"}, nil, false},
		{"somebody chose another one", "web", values{"app": "web"}, values{application: "gone"}, false},
		{"somebody chose none", "web", values{"app": "web"}, values{application: "", injected: "gone"}, false},
		{"another one was injected", "web", values{"app": "web", partOf: "gone"}, values{application: "gone", injected: "gone"}, true},
		{"its label was injected", "bare", values{"app": "web", partOf: "gone"}, values{application: "gone", injected: "gone"}, true},
		{"its label is its own", "bare", values{"app": "web", partOf: "suite"}, values{application: "gone", injected: "gone"}, false},
	} {
		claims := x.Get(types.NamespacedName{Namespace: "a", Name: c.app}).Claims(deployments, object("web", c.labels, c.annotations))
		assert.Equal(t, c.want, claims, c.reason)
	}
}
