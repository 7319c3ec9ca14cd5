package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// loggedExample is an installation with two Pods of the containers web and sidecar, after setup, in a
// cluster whose kubelets write what the test says.
type loggedExample struct {
	kubeconfig, namespace string

	mu    sync.Mutex
	asked []url.Values
}

// newLoggedExample starts it. write answers for a container.
func newLoggedExample(t *testing.T, write func(w http.ResponseWriter, r *http.Request, container string)) *loggedExample {
	t.Helper()
	cluster, c := user(t), clientOf(t, user(t))
	l := &loggedExample{namespace: cluster.Namespace(t)}
	l.kubeconfig = inFrontOf(t, cluster, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return true
		}
		l.mu.Lock()
		l.asked = append(l.asked, r.URL.Query())
		l.mu.Unlock()
		write(w, r, r.URL.Query().Get("container"))
		return false
	})
	web := deployment(l.namespace, "web")
	two := int32(2)
	web.Spec.Replicas = &two
	spec := &web.Spec.Template.Spec
	spec.InitContainers = []corev1.Container{{Name: "setup", Image: "busybox:1.37"}}
	spec.Containers = append(spec.Containers, corev1.Container{Name: "sidecar", Image: "busybox:1.37"})
	installed, empty := installation(l.namespace, "web", "web", "1.0.0"), installation(l.namespace, "empty", "web", "1.0.0")
	installed.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: l.namespace + "_web_apps_Deployment", Version: "v1"}}}
	create(t, c, web, installed, empty)
	require.Eventually(t, func() bool {
		d := &appsv1.Deployment{}
		return c.Get(t.Context(), client.ObjectKeyFromObject(web), d) == nil && d.Status.AvailableReplicas == 2
	}, limit, often)
	return l
}

// logs runs the command.
func (l *loggedExample) logs(t *testing.T, args ...string) result {
	t.Helper()
	l.mu.Lock()
	l.asked = nil
	l.mu.Unlock()
	return waybillWith(t, "", append([]string{"logs", "-n", l.namespace, "--kubeconfig", l.kubeconfig}, args...)...)
}

// prefixes returns what stands between brackets before the lines, the generated parts of names cut off.
func prefixes(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		inner, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
		parts := strings.Split(inner, "/")
		parts[1], _, _ = strings.Cut(parts[1], "-")
		found = append(found, strings.Join(parts, "/"))
	}
	return found
}

func TestLogs_ofEveryContainer(t *testing.T) {
	const long = 70 << 10
	l := newLoggedExample(t, func(w http.ResponseWriter, _ *http.Request, container string) {
		switch container {
		case "web":
			fmt.Fprintf(w, "one\ntwo\x1b[2J\x9b2J\u009b2J\b\r\n%s\nthe end", strings.Repeat("X", long))
		case "sidecar":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"BadRequest","code":400,"message":"container \"sidecar\" is waiting to start: ContainerCreating"}`)
		}
	})
	got := l.logs(t, "installation/web")
	require.Equal(t, 0, got.code, got.errOut)
	ofPod := []string{"pod/web/web", "pod/web/web", "pod/web/web", "pod/web/web", "pod/web/web"}
	assert.Equal(t, slices.Concat(ofPod, ofPod), prefixes(got.out), "a Pod after the other; a long line is broken")
	assert.Regexp(t, `(?m)^\[pod/web-\w+-\w+/web\] one$`, got.out)
	assert.Contains(t, got.out, "] two^[[2J\uFFFD2J\\u009b2J^H \n", "it cannot steer the terminal")
	assert.Equal(t, 2*long, strings.Count(got.out, "X"), "nothing is lost")
	assert.Contains(t, got.out, "] the end\n", "a line that has not ended is one")
	assert.Equal(t, 2, strings.Count(got.errOut, "warning: read the log of container sidecar of Pod "+l.namespace+"/web-"), got.errOut)
	assert.Contains(t, got.errOut, "is waiting to start: ContainerCreating")

	got = l.logs(t, "empty")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "No Pods found for ApplicationInstallation/empty in "+l.namespace+": `waybill tree` shows what there is\n", got.errOut)
}

func TestLogs_flags(t *testing.T) {
	l := newLoggedExample(t, func(w http.ResponseWriter, _ *http.Request, container string) {
		if container == "setup" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "a line of "+container)
	})
	got := l.logs(t, "installation/web", "-c", "web", "--tail", "5", "--since", "90s", "--timestamps", "--previous")
	require.Equal(t, 0, got.code, got.errOut)
	want := url.Values{"container": {"web"}, "tailLines": {"5"}, "sinceSeconds": {"90"}, "timestamps": {"true"}, "previous": {"true"}}
	assert.Equal(t, []url.Values{want, want}, l.asked)

	got = l.logs(t, "installation/web", "-c", "web", "--prefix=false")
	assert.Equal(t, "a line of web\na line of web\n", got.out)

	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"a container of none": {"a typo is no empty log", []string{"-c", "wbe"}, "no Pod of ApplicationInstallation/web in " + l.namespace + " has a container wbe"},
		"no log at all":       {"nothing was shown", []string{"-c", "setup"}, "none of the 2 logs could be read"},
		"too many to follow":  {"each is a connection", []string{"-f", "--max-log-requests", "5"}, "has 6 containers, and --max-log-requests is 5: name one with --container, or raise it"},
		"a negative tail":     {"", []string{"--tail", "-2"}, "--tail must be -1 or more"},
		"follow and previous": {"what has ended writes no more", []string{"-f", "-p"}, "--follow and --previous exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.logs(t, append([]string{"installation/web"}, tc.args...)...)
			assert.Equal(t, 2, got.code, tc.reason)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
}

// All are followed at once, and a line is printed when it is written.
func TestLogs_follow(t *testing.T) {
	l := newLoggedExample(t, func(w http.ResponseWriter, r *http.Request, container string) {
		fmt.Fprintln(w, "begun "+container)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	run := begin(t, l.kubeconfig, "logs", "installation/web", "-n", l.namespace, "--follow", "--tail=0")
	require.Eventually(t, func() bool {
		return slices.Equal(slices.Sorted(slices.Values(prefixes(run.out.String()))), []string{
			"pod/web/setup", "pod/web/setup", "pod/web/sidecar", "pod/web/sidecar", "pod/web/web", "pod/web/web",
		})
	}, limit, often)
	assert.Equal(t, 0, run.stop(), &run.errOut)
	assert.Empty(t, run.errOut.String())
}

// What starts while the command runs is followed, too: a Pod of the tree, and a container that was restarted. What
// others start there is not.
func TestLogs_followWhatStartsLater(t *testing.T) {
	c := clientOf(t, user(t))
	l := newLoggedExample(t, func(w http.ResponseWriter, _ *http.Request, container string) {
		fmt.Fprintln(w, "begun "+container)
	})
	stranger := deployment(l.namespace, "stranger")
	create(t, c, stranger)
	run := begin(t, l.kubeconfig, "logs", "installation/web", "-n", l.namespace, "--follow", "-c", "web", "--tail=1")
	lines := func(want int) func() bool {
		return func() bool { return strings.Count(run.out.String(), "] begun web\n") == want }
	}
	require.Eventually(t, lines(2), limit, often, &run.errOut)

	web, three := &appsv1.Deployment{}, int32(3)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "web"}, web))
	web.Spec.Replicas = &three
	require.NoError(t, c.Update(t.Context(), web))
	require.Eventually(t, lines(3), limit, often, "a Pod that is new: %s", &run.errOut)

	pod := &corev1.Pod{}
	name, _, _ := strings.Cut(strings.TrimPrefix(run.out.String(), "[pod/"), "/")
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, pod))
	before := pod.DeepCopy()
	status := &pod.Status.ContainerStatuses[slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "web" })]
	status.RestartCount = 1
	require.NoError(t, c.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
	require.Eventually(t, lines(4), limit, often, "a run that is new: %s", &run.errOut)

	assert.Equal(t, 0, run.stop(), &run.errOut)
	assert.Equal(t, []string{"pod/web/web", "pod/web/web", "pod/web/web", "pod/web/web"}, prefixes(run.out.String()))
	assert.Empty(t, run.errOut.String())
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Equal(t, []string{"1", "1", "", ""}, tails(l.asked), "the log of what starts later is shown from its beginning")
}

func tails(asked []url.Values) (all []string) {
	for _, q := range asked {
		all = append(all, q.Get("tailLines"))
	}
	return all
}

// The limit holds for what starts later, and who may not watch Pods follows those that there are.
func TestLogs_followWithinLimitsAndRights(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	held := make(chan struct{})
	l := newLoggedExample(t, func(w http.ResponseWriter, r *http.Request, container string) {
		fmt.Fprintln(w, "begun "+container)
		w.(http.Flusher).Flush()
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	run := begin(t, l.kubeconfig, "logs", "installation/web", "-n", l.namespace, "--follow", "-c", "web", "--max-log-requests=2")
	run.prints(t, "begun web")
	web, three := &appsv1.Deployment{}, int32(3)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "web"}, web))
	web.Spec.Replicas = &three
	require.NoError(t, c.Update(t.Context(), web))
	require.Eventually(t, func() bool {
		return strings.Contains(run.errOut.String(), "is not followed: --max-log-requests is 2")
	}, limit, often, &run.errOut)
	assert.Equal(t, 0, run.stop(), &run.errOut)
	assert.Equal(t, 1, strings.Count(run.errOut.String(), "is not followed"), "it is said once")

	close(held) // the logs end
	kubeconfig, _ := userWith(t, cluster, l.namespace, right(v1alpha1.Group, []string{"*"}, "get", "list"),
		right("", []string{"pods", "pods/log"}, "get", "list"), right("apps", []string{"*"}, "get", "list"))
	got := waybillWith(t, "", "logs", "installation/web", "-n", l.namespace, "-c", "web", "--follow", "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code, "this API server reaches no kubelet, and nothing can be waited for")
	assert.Contains(t, got.errOut, "containers that start later are not followed: watch pods in namespace "+l.namespace+" of cluster ")
}

// In a user cluster, by the kubeconfig that the hub has of it, and from several at once.
func TestLogs_inUserClusters(t *testing.T) {
	l := newLoggedExample(t, func(w http.ResponseWriter, _ *http.Request, container string) {
		fmt.Fprintln(w, "a line of "+container)
	})
	h := clientOf(t, hub(t))
	system := hub(t).Namespace(t)
	kubeconfig, err := os.ReadFile(l.kubeconfig)
	require.NoError(t, err)
	engage(t, h, system, "berlin", kubeconfig)
	engage(t, h, system, "dublin", kubeconfig)
	got := waybill(t, hub(t), "logs", "installation/web", "-n", l.namespace, "--cluster", system+"/berlin", "-c", "web")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"pod/web/web", "pod/web/web"}, prefixes(got.out))

	teamA := gitSync(system, "team-a")
	teamA.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: l.namespace + "_web_apps_Deployment", Version: "v1"}}}
	teamA.Status.Clusters = []v1alpha1.GitSyncClusterStatus{{Name: "berlin", Ready: true}, {Name: "dublin", Ready: true}}
	create(t, h, teamA)
	got = waybill(t, hub(t), "logs", "gitsync/team-a", "-n", system, "-c", "web")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, 2, strings.Count(got.out, "[berlin/"+l.namespace+"/pod/web-"))
	assert.Equal(t, 2, strings.Count(got.out, "[dublin/"+l.namespace+"/pod/web-"))
}
