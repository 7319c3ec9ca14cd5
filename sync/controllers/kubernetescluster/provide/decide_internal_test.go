package provide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// K2, K3: what is done about the installation of a definition, in every case that matters.
func TestDecide(t *testing.T) {
	const none, byDefault, enforced = "", v1alpha1.ProvidedByDefault, v1alpha1.ProvidedEnforced
	live := func(mark string, going bool) *v1alpha1.ApplicationInstallation {
		i := &v1alpha1.ApplicationInstallation{}
		if mark != "" {
			i.Labels = map[string]string{v1alpha1.ProvidedLabel: mark}
		}
		if going {
			now := metav1.NewTime(time.Now())
			i.DeletionTimestamp = &now
		}
		return i
	}
	for name, tc := range map[string]struct {
		mode          string
		settled, same bool
		unmarked      bool // a user has removed our mark
		live          *v1alpha1.ApplicationInstallation
		want          action
		reason        string
	}{
		"default, new":               {mode: byDefault, want: create, reason: "once in each cluster"},
		"default, removed":           {mode: byDefault, settled: true, want: nothing, reason: "it may be removed"},
		"default, being removed":     {mode: byDefault, settled: true, live: live(byDefault, true), want: nothing, reason: "it may be removed"},
		"default, edited":            {mode: byDefault, settled: true, live: live(byDefault, false), want: nothing, reason: "it may be edited"},
		"default, somebody's":        {mode: byDefault, live: live("", false), want: nothing, reason: "it is there already"},
		"default, enforced before":   {mode: byDefault, settled: true, live: live(enforced, false), want: free, reason: "nobody may edit it otherwise"},
		"enforced, new":              {mode: enforced, want: create, reason: "it is missing"},
		"enforced, removed":          {mode: enforced, settled: true, want: create, reason: "it comes back"},
		"enforced, being removed":    {mode: enforced, settled: true, live: live(enforced, true), want: await, reason: "its name is taken until then"},
		"enforced, edited":           {mode: enforced, settled: true, live: live(enforced, false), want: put, reason: "it is corrected"},
		"enforced, as it should be":  {mode: enforced, settled: true, same: true, live: live(enforced, false), want: nothing, reason: "nothing is written"},
		"enforced, by default first": {mode: enforced, settled: true, live: live(byDefault, false), want: put, reason: "Waybill made it"},
		"enforced, somebody's":       {mode: enforced, live: live("", false), want: yield, reason: "it is not taken over"},
		"enforced, mark removed":     {mode: enforced, settled: true, unmarked: true, live: live("", false), want: put, reason: "that is no way out"},
		"none, none":                 {mode: none, want: nothing, reason: "there is nothing"},
		"none, enforced before":      {mode: none, settled: true, live: live(enforced, false), want: free, reason: "it stays, and is the cluster's own"},
		"none, being removed":        {mode: none, settled: true, live: live(enforced, true), want: nothing, reason: "it goes"},
		"none, by default":           {mode: none, settled: true, live: live(byDefault, false), want: nothing, reason: "it stays"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, decide(observed{
				mode: tc.mode, settled: tc.settled, live: tc.live, same: tc.same,
				ours: tc.live != nil && tc.live.Labels[v1alpha1.ProvidedLabel] != "" || tc.unmarked,
			}), tc.reason)
		})
	}
}

// K9: what a definition requires is provided before it, and corrected before it when both change.
func TestInOrder(t *testing.T) {
	definition := func(name string, requires ...string) v1alpha1.ApplicationDefinition {
		d := v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, other := range requires {
			d.Spec.Requires = append(d.Spec.Requires, v1alpha1.ApplicationRequirement{Name: other})
		}
		return d
	}
	for name, tc := range map[string]struct {
		reason string
		given  []v1alpha1.ApplicationDefinition
		want   []string
	}{
		"by name":  {"the order is the same each time", []v1alpha1.ApplicationDefinition{definition("b"), definition("a")}, []string{"a", "b"}},
		"requires": {"also through others", []v1alpha1.ApplicationDefinition{definition("a", "c", "d"), definition("b"), definition("c", "d"), definition("d")}, []string{"d", "c", "a", "b"}},
		"missing":  {"the installation says so", []v1alpha1.ApplicationDefinition{definition("a", "z"), definition("b")}, []string{"a", "b"}},
		"cycle":    {"the installations say so", []v1alpha1.ApplicationDefinition{definition("a", "b"), definition("b", "a"), definition("c", "c")}, []string{"b", "a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range inOrder(tc.given) {
				got = append(got, d.Name)
			}
			assert.Equal(t, tc.want, got, tc.reason)
		})
	}
}

// K62: where the hub installs admission in a cluster, what is asked for waits for that.
func TestAgentPending(t *testing.T) {
	kc := &v1alpha1.KubernetesCluster{}
	assert.Empty(t, agentPending(kc), "nobody says anything of an agent")
	for status, pending := range map[metav1.ConditionStatus]bool{metav1.ConditionFalse: true, metav1.ConditionUnknown: true, metav1.ConditionTrue: false} {
		kc.Status.Conditions = []metav1.Condition{{Type: v1alpha1.AgentReadyCondition, Status: status}}
		assert.Equal(t, pending, agentPending(kc) != "", status)
	}
	kc.Status.Conditions = []metav1.Condition{{Type: v1alpha1.AgentReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.AgentNotInstalledReason}}
	assert.Empty(t, agentPending(kc), "somebody else installs it")
	kc.Spec.Agent = &v1alpha1.ClusterAgent{}
	assert.Empty(t, agentPending(kc), "it is that of another KubernetesCluster")
	kc.Status.Conditions = nil
	assert.NotEmpty(t, agentPending(kc), "nothing was said of it yet")
}

// K63, K64: what was written of the annotation counts until the cache has it, and not longer.
func TestShortening_latest(t *testing.T) {
	written := shortening{before: "[a,b]", after: "[b]", resourceVersion: "20"}
	for name, tc := range map[string]struct{ text, resourceVersion, want string }{
		"the cache is behind":       {"[a,b]", "19", "[b]"},
		"the cache has it":          {"[b]", "20", "[b]"},
		"asked for once more":       {"[a,b]", "21", "[a,b]"},
		"changed before it":         {"[a]", "18", "[a]"},
		"a hub that was taken back": {"[c]", "7", "[c]"},
	} {
		t.Run(name, func(t *testing.T) {
			kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: tc.resourceVersion, Annotations: map[string]string{v1alpha1.InitialInstallationsAnnotation: tc.text},
			}}
			assert.Equal(t, tc.want, written.latest(kc))
			assert.Equal(t, tc.text, shortening{}.latest(kc), "nothing was written")
		})
	}
}

// C28: a condition names a few of many, and says the same each time.
func TestRecord_namesAFew(t *testing.T) {
	kc := &v1alpha1.KubernetesCluster{}
	kc.Annotations = map[string]string{v1alpha1.InitialInstallationsAnnotation: "[]"}
	r := &Report{Failed: []string{"a", "b", "c", "d", "e", "f", "g"}, Provided: []v1alpha1.ProvidedDefinition{{Name: "web", Problem: "refused"}, {Name: "well"}}}
	Record(kc, r, "")
	messages := map[string]string{}
	for _, c := range kc.Status.Conditions {
		assert.Equal(t, metav1.ConditionFalse, c.Status, c.Type)
		messages[c.Type] = c.Message
	}
	assert.Equal(t, map[string]string{
		v1alpha1.InitialInstallationsCreatedCondition: "7 installations are not created yet: a; b; c; d; e; and 2 more",
		v1alpha1.DefinitionsProvidedCondition:         "ApplicationDefinition web: refused",
	}, messages)
	assert.Equal(t, r.Provided, kc.Status.Provided)

	Record(kc, nil, "spec.paused is set")
	assert.Equal(t, r.Provided, kc.Status.Provided, "what is not known stays")
	Record(kc, &Report{Waiting: "connecting"}, "")
	assert.Equal(t, r.Provided, kc.Status.Provided)
}
