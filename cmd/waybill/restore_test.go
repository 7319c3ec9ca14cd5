package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// restoring has a StatefulApplication say how far its restore is.
func restoring(t *testing.T, c client.Client, namespace, name string, status v1alpha1.RestoreStatus, conditions ...metav1.Condition) {
	t.Helper()
	says(t, c, stateful(namespace, name), func(a *v1alpha1.StatefulApplication) {
		a.Status.Restore, a.Status.Conditions, a.Status.ObservedGeneration = &status, conditions, a.Generation
	})
}

// S14, S25, S26, S27, S28, S102: the manifest has the rules that a new name takes, as the document's example.
func TestRestore_underAnotherName(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, taken(namespace, "monday", "mongo"))
	got := waybill(t, cluster, "restore", "monday", "-n", namespace, "--to", "mongo-clone", "--to-namespace", "ns2", "--rename", "db=db-2", "-o", "yaml")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, strings.ReplaceAll(`apiVersion: apps.waybill.dev/v1alpha1
kind: StatefulApplication
metadata:
  name: mongo-clone
  namespace: ns2
spec:
  applicationName: mongo-clone
  source:
    snapshotRef:
      name: monday
      namespace: NS
    type: Snapshot
  valueSubstitutionRules:
  - match: Substring
    newValue: mongo-clone
    oldValue: mongo
    type: Name
  - match: Exact
    newValue: mongo-clone
    oldValue: mongo
    type: Label
  - match: Substring
    newValue: db-2
    oldValue: db
    type: Name
  - match: Exact
    newValue: db-2
    oldValue: db
    type: Label
`, "NS", namespace), got.out)

	got = waybill(t, cluster, "restore", "monday", "-n", namespace, "-o", "yaml")
	require.Equal(t, 0, got.code, got.errOut)
	assert.NotContains(t, got.out, "valueSubstitutionRules", "the same name in the same namespace needs none")
	got = waybillWith(t, "", "__complete", "-n", namespace, "--kubeconfig", cluster.KubeconfigFile(), "restore", "")
	assert.Contains(t, got.out, "monday\n")
	got = waybillWith(t, "", "__complete", "-n", namespace, "--kubeconfig", cluster.KubeconfigFile(), "restore", "monday", "--to-namespace", "")
	assert.Contains(t, got.out, namespace+"\n")
}

// C18: what was refused, and rules that changed nothing, are warnings beside the outcome.
func TestRestore_stepByStep(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, taken(namespace, "monday", "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "restore", "monday", "-n", namespace, "--to", "copy")
	run.prints(t, "created\n")
	t.Cleanup(func() { _ = c.Delete(t.Context(), stateful(namespace, "copy")) })
	restoring(t, c, namespace, "copy", v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreClaims, Objects: 4})
	restoring(t, c, namespace, "copy", v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreObjects, Objects: 4})
	run.prints(t, "Claims")
	restoring(t, c, namespace, "copy", v1alpha1.RestoreStatus{
		Phase: v1alpha1.RestoreCompleted, Objects: 4, Created: 4,
		Rules: []v1alpha1.RuleHits{{Rule: 0, Hits: 3}, {Rule: 1, Hits: 0}},
	})
	assert.Equal(t, 0, run.ends(t), run.errOut.String())
	assert.Equal(t, strings.ReplaceAll(`StatefulApplication/copy in NS created
  Claims TIME
  Objects TIME  4 of 4 objects created
StatefulApplication/copy in NS: restored: 4 objects, Application copy (TIME)
`, "NS", namespace), timeless(run.out.String()))
	assert.Equal(t, "warning: spec.valueSubstitutionRules[1] changed nothing: no label is \"mongo\"\n", run.errOut.String())

	got := waybill(t, cluster, "restore", "monday", "-n", namespace, "--to", "copy")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "StatefulApplication/copy in "+namespace+" exists: restore it under another name with --to, or take it back "+
		"to the snapshot with: waybill rollback copy -n "+namespace+" --to monday")

	run = begin(t, cluster.KubeconfigFile(), "restore", "monday", "-n", namespace, "--to", "third")
	run.prints(t, "created\n")
	restoring(t, c, namespace, "third", v1alpha1.RestoreStatus{Phase: v1alpha1.RestorePending},
		condition("Ready", "False", "AlreadyExists", "Service web exists"), condition("Reconciling", "True", "ProgressingWithRetry", "Service web exists"))
	assert.Equal(t, 1, run.ends(t), "a user has to make room")
	assert.Contains(t, run.errOut.String(), "not ready: AlreadyExists: Service web exists (")

	run = begin(t, cluster.KubeconfigFile(), "restore", "monday", "-n", namespace, "--to", "other")
	run.prints(t, "created\n")
	restoring(t, c, namespace, "other", v1alpha1.RestoreStatus{
		Phase: v1alpha1.RestoreFailed,
		Problems: []v1alpha1.Problem{{
			ObjectReference: v1alpha1.ObjectReference{Kind: "Service", Namespace: namespace, Name: "web"}, Reason: "ApplyFailed", Message: "quota exceeded",
		}},
	}, condition("Ready", "False", "RestoreFailed", "1 object was refused"))
	assert.Equal(t, 1, run.ends(t))
	assert.Contains(t, run.errOut.String(), "StatefulApplication/other in "+namespace+": failed: 1 object was refused (")
	assert.Contains(t, run.errOut.String(), "warning: Service web: ApplyFailed: quota exceeded\n")
}

// S101: a copy takes a snapshot of its own, and restores that once it is ready.
func TestClone_takesASnapshot(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"), stateful(namespace, "shop"))
	run := begin(t, cluster.KubeconfigFile(), "clone", "mongo", "copy", "-n", namespace, "--snapshot-class", "mongo")
	run.prints(t, "created\n")
	list := &v1alpha1.ApplicationSnapshotList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace)))
	require.Len(t, list.Items, 1)
	s := &list.Items[0]
	assert.Equal(t, "24h0m0s", s.Spec.TTL.Duration.String(), "it is not needed for long")
	assert.NotContains(t, run.out.String(), "StatefulApplication/copy", "the snapshot is not ready yet")
	phase(t, c, s, v1alpha1.SnapshotReady, nil)
	run.prints(t, "StatefulApplication/copy in "+namespace+" created\n")
	copied := stateful(namespace, "copy")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied))
	assert.Equal(t, s.Name, copied.Spec.Source.SnapshotRef.Name)
	restoring(t, c, namespace, "copy", v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted, Objects: 4})
	assert.Equal(t, 0, run.ends(t), run.errOut.String())

	failing := begin(t, cluster.KubeconfigFile(), "clone", "shop", "second", "-n", namespace, "--snapshot-class", "mongo")
	failing.prints(t, "created\n")
	require.NoError(t, c.Delete(t.Context(), s))
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace)))
	phase(t, c, &list.Items[0], v1alpha1.SnapshotFailed, nil)
	assert.Equal(t, 1, failing.ends(t))
	assert.NotContains(t, failing.out.String(), "StatefulApplication/second", "nothing is restored from it")
}

// Two applications beside each other with the same labels would take each other's Pods.
func TestClone_keepsLabelsApart(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := application(namespace, "mongo", "mongo")
	app.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	create(t, c, app, stateful(namespace, "mongo"), taken(namespace, "monday", "mongo"), taken(namespace, "others", "else"))
	clone := func(args ...string) result {
		return waybill(t, cluster, append([]string{"clone", "mongo", "copy", "-n", namespace}, args...)...)
	}
	for _, args := range [][]string{{}, {"--snapshot", "monday", "-o", "yaml"}} {
		got := clone(args...)
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.errOut, "the objects of StatefulApplication/copy in "+namespace+" would have the labels of Application/mongo, app=db, so that Services")
	}
	for reason, args := range map[string][]string{
		"the label is replaced":   {"--rename", "db=db-2"},
		"it is another namespace": {"--to-namespace", "other"},
	} {
		got := clone(append(args, "--snapshot", "monday", "-o", "yaml")...)
		assert.Equal(t, 0, got.code, reason+got.errOut)
	}
	for want, args := range map[string][]string{
		"--rename \"db\": write OLD=NEW":                         {"--rename", "db"},
		"--wait=false needs --snapshot":                          {"--wait=false"},
		"--output needs --snapshot":                              {"-o", "yaml"},
		"--snapshot-class is for a new snapshot":                 {"--snapshot", "monday", "--snapshot-class", "x"},
		"is of StatefulApplication else, and not of":             {"--snapshot", "others"},
		`applicationsnapshots.apps.waybill.dev "none" not found`: {"--snapshot", "none"},
	} {
		got := clone(args...)
		assert.Equal(t, 2, got.code, want)
		assert.Contains(t, got.errOut, want)
	}
}
