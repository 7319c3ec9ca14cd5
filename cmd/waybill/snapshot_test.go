package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// phase has a snapshot say that it is at a step.
func phase(t *testing.T, c client.Client, s *v1alpha1.ApplicationSnapshot, at v1alpha1.SnapshotPhase, change func(*v1alpha1.ApplicationSnapshotStatus)) {
	t.Helper()
	says(t, c, s, func(s *v1alpha1.ApplicationSnapshot) {
		s.Status.Phase, s.Status.ObservedGeneration = at, s.Generation
		if change != nil {
			change(&s.Status)
		}
	})
}

// S29, S36, S37, S39, S40, S42, S43, C63: the object is written as the flags say, and each step is a line once it is over.
func TestSnapshot_stepByStep(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "snapshot", "mongo", "-n", namespace, "--class", "mongo", "--name", "one",
		"--tag", "ticket=4711,by=me", "--ttl", "24h", "--claims", "tier=db", "--volume-timeout", "90s")
	run.prints(t, "created\n")
	s := taken(namespace, "one", "mongo")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	assert.Equal(t, v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName:            "mongo",
		Source:                       v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "mongo"},
		Tags:                         map[string]string{"ticket": "4711", "by": "me"},
		PersistentVolumeClaimFilter:  &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "db"}},
		VolumeSnapshotTimeoutSeconds: new(int64(90)),
		TTL:                          metav1.Duration{Duration: 24 * time.Hour},
	}, s.Spec)

	volume := v1alpha1.SnapshotVolume{Claim: "data-mongo-0", VolumeSnapshot: "snap-1"}
	phase(t, c, s, v1alpha1.SnapshotCapturing, nil)
	phase(t, c, s, v1alpha1.SnapshotQuiescing, func(s *v1alpha1.ApplicationSnapshotStatus) {
		s.Objects, s.Quiesced = 9, []v1alpha1.QuiescedHook{{Name: "lock", ExecutionHook: "one-lock"}}
	})
	run.prints(t, "Capturing")
	phase(t, c, s, v1alpha1.SnapshotCutting, func(s *v1alpha1.ApplicationSnapshotStatus) { s.Volumes = []v1alpha1.SnapshotVolume{volume} })
	run.prints(t, "Quiescing")
	volume.Cut = true
	phase(t, c, s, v1alpha1.SnapshotReleasing, func(s *v1alpha1.ApplicationSnapshotStatus) { s.Volumes = []v1alpha1.SnapshotVolume{volume} })
	run.prints(t, "Cutting")
	volume.Ready = true
	phase(t, c, s, v1alpha1.SnapshotBinding, func(s *v1alpha1.ApplicationSnapshotStatus) {
		s.QuiescedFor, s.Volumes = metav1.Duration{Duration: 900 * time.Millisecond}, []v1alpha1.SnapshotVolume{volume}
	})
	run.prints(t, "Releasing")
	phase(t, c, s, v1alpha1.SnapshotReady, func(s *v1alpha1.ApplicationSnapshotStatus) {
		s.Consistency, s.Size, s.BoundSnapshotContentName = v1alpha1.ConsistencyApplication, "20Gi", "snapcontent-1"
	})
	assert.Equal(t, 0, run.ends(t), run.errOut.String())
	assert.Equal(t, strings.ReplaceAll(`ApplicationSnapshot/one in NS created
  Capturing TIME  the definitions of 9 objects are stored
  Quiescing TIME  1 pre-hook
  Cutting TIME  1 of 1 volume cut
  Releasing TIME  quiesced for TIME
  Binding TIME  bound to ApplicationSnapshotContent/snapcontent-1
ApplicationSnapshot/one in NS: ready: consistency Application, 1 volume, 20Gi, quiesced for TIME (TIME)
`, "NS", namespace), timeless(run.out.String()))
	assert.Empty(t, run.errOut.String(), "no animation without a terminal")

	got := waybill(t, cluster, "get", "snapshots", "-n", namespace)
	assert.Equal(t, []string{"one", "mongo", "Application", "900ms", "20Gi"}, append(columns(got.out)[1][:4], columns(got.out)[1][4]), got.out)
}

// S48, S50: what failed is said with the error of the status, and exit code 1.
func TestSnapshot_failed(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "snapshot", "mongo", "-n", namespace, "--class", "mongo", "--name", "one")
	run.prints(t, "created\n")
	s := taken(namespace, "one", "mongo")
	phase(t, c, s, v1alpha1.SnapshotFailed, func(s *v1alpha1.ApplicationSnapshotStatus) {
		s.Error = &v1alpha1.DataError{Reason: "HookFailed", Message: "mongo-0:\x1b[2J exit code 1"}
	})
	assert.Equal(t, 1, run.ends(t))
	assert.Contains(t, run.errOut.String(), "ApplicationSnapshot/one in "+namespace+": failed: HookFailed: mongo-0:^[[2J exit code 1 (")
}

// What waits for a user is not waited for, nor is what no controller takes up; both go on.
func TestSnapshot_notReady(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "snapshot", "mongo", "-n", namespace, "--class", "none", "--name", "one")
	run.prints(t, "created\n")
	s := taken(namespace, "one", "mongo")
	phase(t, c, s, v1alpha1.SnapshotPending, func(s *v1alpha1.ApplicationSnapshotStatus) {
		s.Conditions = []metav1.Condition{
			condition("Ready", "False", "ClassNotFound", `no class "none"`), condition("Stalled", "True", "ClassNotFound", `no class "none"`),
		}
	})
	assert.Equal(t, 1, run.ends(t))
	assert.Contains(t, run.errOut.String(), `not ready: ClassNotFound: no class "none" (`)
	assert.Contains(t, run.errOut.String(), "to follow it: waybill get applicationsnapshot/one -n "+namespace+" --watch\n")

	got := waybill(t, cluster, "snapshot", "mongo", "-n", namespace, "--class", "mongo", "--name", "two", "--timeout", "5s")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.errOut, "ApplicationSnapshot/two in "+namespace+": not reconciled yet: check that waybill-sync runs in cluster ")
	assert.Contains(t, got.errOut, "It goes on without this command; to follow it: waybill get applicationsnapshot/two -n "+namespace+" --watch\n")
}

// Interrupting the command is not interrupting the snapshot.
func TestSnapshot_interrupted(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "snapshot", "mongo", "-n", namespace, "--class", "mongo", "--name", "one")
	run.prints(t, "created\n")
	s := taken(namespace, "one", "mongo")
	phase(t, c, s, v1alpha1.SnapshotPending, nil)
	phase(t, c, s, v1alpha1.SnapshotCutting, nil)
	run.prints(t, "Pending")
	assert.Equal(t, 2, run.stop())
	assert.Equal(t, "error: interrupted: ApplicationSnapshot/one in "+namespace+" goes on; to follow it: waybill get applicationsnapshot/one -n "+
		namespace+" --watch\n", run.errOut.String())
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	assert.Zero(t, s.DeletionTimestamp)
}

// C19: the class is the default one of the cluster, and who has to choose learns among which.
func TestSnapshot_class(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	class := func(name string, isDefault string) *v1alpha1.ApplicationSnapshotClass {
		return &v1alpha1.ApplicationSnapshotClass{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.DefaultClassAnnotation: isDefault}},
			Snapshotter: v1alpha1.DataHandler,
		}
	}
	args := []string{"snapshot", "mongo", "-n", namespace, "--wait=false"}
	got := waybill(t, cluster, args...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "has no ApplicationSnapshotClass: an administrator has to create one first")
	create(t, c, class("cold", "false"))
	got = waybill(t, cluster, args...)
	assert.Contains(t, got.errOut, "no ApplicationSnapshotClass has the annotation apps.waybill.dev/is-default-class: choose one with --class: cold")
	create(t, c, class("live", "true"))
	got = waybill(t, cluster, args...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Regexp(t, `^ApplicationSnapshot/mongo-\d{8}-\d{6} in `+namespace+` created\n$`, got.out)
	got = waybill(t, cluster, append(args, "-o", "yaml", "--name", "one")...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, strings.ReplaceAll(`apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationSnapshot
metadata:
  name: one
  namespace: NS
spec:
  snapshotClassName: live
  source:
    applicationName: mongo
    type: Application
`, "NS", namespace), got.out)
	create(t, c, class("third", "true"))
	got = waybill(t, cluster, args...)
	assert.Contains(t, got.errOut, "several ApplicationSnapshotClasses have the annotation apps.waybill.dev/is-default-class: choose one with --class: live, third")

	got = waybillWith(t, "", "__complete", "-n", namespace, "--kubeconfig", cluster.KubeconfigFile(), "snapshot", "mongo", "--class", "")
	assert.Contains(t, got.out, "cold\nlive\nthird\n")
	got = waybillWith(t, "", "__complete", "-n", namespace, "--kubeconfig", cluster.KubeconfigFile(), "snapshot", "")
	assert.Contains(t, got.out, "mongo\n")

	kubeconfig, _ := userWith(t, cluster, namespace, rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"statefulapplications"}, Verbs: []string{"get"},
	})
	got = waybillWith(t, "", append(args, "--kubeconfig", kubeconfig)...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "look for the default ApplicationSnapshotClass: ")
	assert.Contains(t, got.errOut, "or name a class with --class")
}

// An Application that is not wrapped says how to.
func TestSnapshot_ofAnApplication(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, application(namespace, "mongo", "mongo"))
	args := []string{"snapshot", "mongo", "-n", namespace, "--class", "mongo", "--wait=false", "--name", "one"}
	got := waybill(t, cluster, args...)
	assert.Equal(t, 2, got.code)
	assert.Equal(t, strings.ReplaceAll("error: no StatefulApplication says that Application/mongo in NS has data: "+
		"waybill snapshot mongo -n NS --wrap creates one\n", "NS", namespace), got.errOut)
	got = waybill(t, cluster, append(args, "--wrap")...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, strings.ReplaceAll("StatefulApplication/mongo in NS created\nApplicationSnapshot/one in NS created\n", "NS", namespace), got.out)
	wrapper := stateful(namespace, "mongo")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(wrapper), wrapper))
	assert.Equal(t, v1alpha1.StatefulApplicationSpec{ApplicationName: "mongo"}, wrapper.Spec)

	got = waybill(t, cluster, "tree", "statefulapplication/mongo", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Regexp(t, `(?s)^NAME.*\nStatefulApplication/mongo .*─ Application/mongo .*─ ApplicationSnapshot/one `, got.out)

	create(t, c, application(namespace, "shop", "shop"), &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-restored"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "shop"},
	})
	got = waybill(t, cluster, "snapshot", "shop", "-n", namespace, "--class", "mongo", "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, `"applicationName": "shop-restored"`, "the StatefulApplication has another name than its Application")
}

func TestSnapshot_refuses(t *testing.T) {
	cluster := user(t)
	namespace := cluster.Namespace(t)
	for want, args := range map[string][]string{
		`accepts 1 arg(s), received 0`:                               {},
		"--dry-run lists what belongs to the snapshot, and --output": {"mongo", "--dry-run", "-o", "yaml"},
		"--ttl must be at least 1s":                                  {"mongo", "--ttl", "1ms"},
		"--volume-timeout must be at least 1s":                       {"mongo", "--volume-timeout", "-1s"},
		"read --claims: ":                                            {"mongo", "--claims", "a=b=c"},
		`statefulapplications.apps.waybill.dev "mongo" not found`:    {"mongo"},
	} {
		got := waybill(t, cluster, append([]string{"snapshot", "-n", namespace}, args...)...)
		assert.Equal(t, 2, got.code, want)
		assert.Contains(t, got.errOut, want)
	}
}
