package kubernetesapplicationresource

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// W21
func TestWithoutNulls(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"None":   {"what has no null is left as it is, in its order", `{"b":1,"a":"x"}`, `{"b":1,"a":"x"}`},
		"Word":   {"null in a text is no null", `{"a":"null"}`, `{"a":"null"}`},
		"Field":  {"a field that is null is one that is absent", `{"a":null,"b":1}`, `{"b":1}`},
		"Nested": {"wherever it stands", `{"a":{"b":null},"c":[{"d":null,"e":1}]}`, `{"a":{},"c":[{"e":1}]}`},
		"List":   {"an entry of a list is not left out: the others would move", `{"a":[null,1]}`, `{"a":[null,1]}`},
		"Number": {"numbers are as they are written", `{"a":null,"b":12345678901234567890.50}`, `{"b":12345678901234567890.50}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, string(withoutNulls([]byte(tc.in))), tc.reason) })
	}
	assert.Nil(t, withoutNulls(nil))
}

func TestSameJSON(t *testing.T) {
	assert.True(t, sameJSON([]byte(`{"a":1,"b":[2]}`), []byte(`{ "b": [2], "a": 1 }`)))
	assert.False(t, sameJSON([]byte(`{"a":1}`), []byte(`{"a":2}`)))
	assert.False(t, sameJSON([]byte(`{`), []byte(`{"a":2}`)))
}

// W13: that the cluster could not be read says nothing about what was submitted.
func TestConclude_clusterLetUsDown(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{Spec: v1alpha1.KubernetesApplicationResourceSpec{ClusterName: "berlin"}}
	kar.Namespace = "team"
	s := &scope{kar: kar}
	conditions.MarkTrue(kar, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "submitted")
	failed := (&work{scope: s}).failed(errors.New("connection refused"))
	assert.EqualError(t, failed, "cluster team/berlin: connection refused")
	s.conclude(reconcile.Outcome{}, failed)
	assert.Equal(t, v1alpha1.StateSubmitted, kar.Status.State)
	assert.True(t, conditions.IsTrue(kar, v1alpha1.SubmittedCondition))

	kar.Generation++
	s.conclude(reconcile.Outcome{}, failed)
	assert.Equal(t, v1alpha1.StateScheduled, kar.Status.State, "of this generation nothing is known")
}

// What the hub refuses is not said to be the cluster's fault.
func TestFailed_ofTheHub(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{Spec: v1alpha1.KubernetesApplicationResourceSpec{ClusterName: "berlin"}}
	declared := recordFailed(errors.New("the hub is read-only"))
	failed := (&work{scope: &scope{kar: kar}}).failed(fmt.Errorf("store what is about to be applied: %w", declared))
	assert.EqualError(t, failed, "record in status.inventory, on the hub, what is about to be applied: the hub is read-only")
}

// W23
func TestStateOf(t *testing.T) {
	cases := map[string]struct {
		reason    string
		cluster   string
		deleting  bool
		submitted metav1.ConditionStatus
		want      v1alpha1.ApplicationState
	}{
		"Unscheduled": {reason: "nothing happens before there is a cluster", want: v1alpha1.StatePending},
		"Scheduled":   {reason: "nothing was tried yet", cluster: "berlin", want: v1alpha1.StateScheduled},
		"Unknown":     {reason: "nobody could look", cluster: "berlin", submitted: metav1.ConditionUnknown, want: v1alpha1.StateScheduled},
		"Submitted":   {reason: "it is there", cluster: "berlin", submitted: metav1.ConditionTrue, want: v1alpha1.StateSubmitted},
		"Failed":      {reason: "it was refused", cluster: "berlin", submitted: metav1.ConditionFalse, want: v1alpha1.StateFailed},
		"Deleting":    {reason: "going counts more than being there", cluster: "berlin", deleting: true, submitted: metav1.ConditionTrue, want: v1alpha1.StateDeleting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kar := &v1alpha1.KubernetesApplicationResource{Spec: v1alpha1.KubernetesApplicationResourceSpec{ClusterName: tc.cluster}}
			if tc.deleting {
				kar.DeletionTimestamp = &metav1.Time{}
				*kar.DeletionTimestamp = metav1.Now()
			}
			if tc.submitted != "" {
				conditions.Set(kar, &metav1.Condition{Type: v1alpha1.SubmittedCondition, Status: tc.submitted, Reason: "Any"})
			}
			assert.Equal(t, tc.want, stateOf(kar), tc.reason)
		})
	}
}
