package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// happened returns an event about an object, minutes ago.
func happened(about corev1.ObjectReference, reason, message string, minutes int) *corev1.Event {
	at := metav1.NewTime(time.Now().Add(-time.Duration(minutes) * time.Minute))
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, GenerateName: "event-"},
		InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		FirstTimestamp: at, LastTimestamp: at, Count: 1, Source: corev1.EventSource{Component: "a-test"},
	}
}

func about(apiVersion, kind, namespace, name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// ours is the version of our kinds.
var ours = v1alpha1.GroupVersion.String()

// From the object of the hub down to the Pods of each cluster, and of no other.
func TestEvents_ofAnObjectAndWhatBecameOfIt(t *testing.T) {
	f := newFleetExample(t)
	h, u := clientOf(t, f.hub), clientOf(t, f.user)
	create(t, h, happened(about(ours, "GitSync", f.clusters, "team-a"), "ApplyFailed", "refused\x1b[2J\nby \u202eadmission", 90))
	create(t, u,
		happened(about(ours, "ApplicationInstallation", f.apps, "web"), "UpgradeFailed", "timed out", 80),
		happened(about("", "ConfigMap", f.apps, "web"), "Odd", "without a version", 70),
		happened(about("apps/v1", "Deployment", f.apps, "other"), "Foreign", "of somebody else", 60),
		happened(about("example.com/v1", "Deployment", f.apps, "web"), "Foreign", "of another kind", 60),
	)
	got := waybill(t, f.hub, "events", "gitsync/team-a", "-n", f.clusters)
	require.Equal(t, 0, got.code, got.errOut)
	lines := strings.Split(got.out, "\n")
	assert.Equal(t, []string{"CLUSTER", "NAMESPACE", "LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, strings.Fields(lines[0]))
	assert.Contains(t, lines[1], "GitSync/team-a")
	assert.Contains(t, lines[1], `refused^[[2J by \u202eadmission`, "it cannot steer the terminal, nor forge a line")
	assert.Regexp(t, `^berlin +`+f.apps+` +80m +Warning +UpgradeFailed +ApplicationInstallation/web +timed out$`, lines[2])
	assert.Contains(t, lines[3], "ConfigMap/web")
	assert.Regexp(t, `berlin +`+f.apps+` .* Normal +ScalingReplicaSet +Deployment/web +Scaled up`, got.out)
	assert.Regexp(t, `berlin +`+f.apps+` .* Normal +Scheduled +Pod/web-\S+ +Successfully assigned`, got.out)
	assert.NotContains(t, got.out, "Foreign")

	got = waybill(t, f.hub, "events", "installation/web", "-n", f.apps, "--cluster", f.clusters+"/berlin", "--types", "Warning", "--no-headers")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, [][]string{
		{"80m", "Warning", "UpgradeFailed", "ApplicationInstallation/web", "timed", "out"},
		{"70m", "Warning", "Odd", "ConfigMap/web", "without", "a", "version"},
	}, columns(got.out), "no columns that say the same in each line")

	got = waybill(t, f.hub, "events", "installation/web", "-n", f.apps, "--cluster", f.clusters+"/berlin", "--types", "Warning", "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	var entries []struct{ Cluster, Type, Reason, Group, Kind, Namespace, Name, Source, Message string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &entries))
	require.Len(t, entries, 2)
	assert.Equal(t, []string{"berlin", "UpgradeFailed", v1alpha1.Group, "ApplicationInstallation", f.apps, "web", "a-test", "timed out"},
		[]string{entries[0].Cluster, entries[0].Reason, entries[0].Group, entries[0].Kind, entries[0].Namespace, entries[0].Name, entries[0].Source, entries[0].Message})
}

// A40: who may read the objects of a namespace only sees what happened there.
func TestEvents_withoutRights(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, installation(namespace, "web", "web", "1.0.0"), happened(about(ours, "ApplicationInstallation", namespace, "web"), "Failed", "why", 1))
	blind, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"*"}, "get", "list"))
	got := waybillWith(t, "", "events", "installation/web", "-n", namespace, "--kubeconfig", blind)
	assert.Equal(t, 2, got.code, "nothing is known")
	assert.Contains(t, got.errOut, "list events in namespace "+namespace+" of cluster ")

	got = waybill(t, cluster, "events", "installation/web", "-n", namespace, "--types", "Bad")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, `--types must be Normal or Warning, and not "Bad"`)
	got = waybill(t, cluster, "events", "installation/web", "-n", namespace, "--types", "Normal")
	assert.Equal(t, 0, got.code)
	assert.Equal(t, "No events found for ApplicationInstallation/web in "+namespace+" and what became of it\n", got.errOut)
}

// Objects that are made while the command runs belong to it, too.
func TestEvents_watch(t *testing.T) {
	f := newFleetExample(t)
	u := clientOf(t, f.user)
	create(t, u, happened(about(ours, "ApplicationInstallation", f.apps, "web"), "Before", "there", 5))
	run := begin(t, f.user.KubeconfigFile(), "events", "installation/web", "-n", f.apps, "--watch")
	run.prints(t, "there")
	create(t, u,
		happened(about("apps/v1", "Deployment", f.apps, "other"), "Foreign", "of somebody else", 0),
		happened(about("apps/v1", "Deployment", f.apps, "web"), "After", "since then", 0),
	)
	run.prints(t, "since then")
	web, two := &appsv1.Deployment{}, int32(2)
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Namespace: f.apps, Name: "web"}, web))
	web.Spec.Replicas = &two
	require.NoError(t, u.Update(t.Context(), web))
	pods := func() string { return string(onlyLines(run.out.String(), "Scheduled")) }
	require.Eventually(t, func() bool { return strings.Count(pods(), "\n") == 2 }, limit, often, "a Pod that is new")
	assert.Equal(t, 0, run.stop(), &run.errOut)
	assert.NotContains(t, run.out.String(), "Foreign")
	assert.Equal(t, 1, strings.Count(run.out.String(), "LAST SEEN"), "the columns are named once")
	assert.Equal(t, 1, strings.Count(run.out.String(), "Before"), "each event is told once")
}

func onlyLines(text, with string) (found []byte) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			found = append(found, line...)
		}
	}
	return found
}

// Who may list events and not watch them is told so, instead of waiting for ever.
func TestEvents_withoutAWatch(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, installation(namespace, "web", "web", "1.0.0"))
	kubeconfig, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"*"}, "get", "list"), right("", []string{"events"}, "list"))
	got := waybillWith(t, "", "events", "installation/web", "-n", namespace, "--watch", "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "watch events in namespace "+namespace+" of cluster ")
}
