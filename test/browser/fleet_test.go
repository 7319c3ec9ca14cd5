package browser

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

const system = "waybill-system"

// world is a hub with a fleet, of which berlin is a real cluster.
type world struct {
	hub, berlin *env.Cluster
	// gate is the way from the hub to berlin.
	gate *env.Gate
}

var built *world

// fleet returns the world that tests look at. They change only what is their own.
func fleet(t testing.TB) world {
	t.Helper()
	if built != nil {
		require.NotNil(t, built.hub, "the test before this one could not create the fleet")
		return *built
	}
	built = &world{}
	hub, berlin := servers(t)
	gate, err := env.NewGate(berlin.Address())
	require.NoError(t, err)
	kubeconfig, err := env.Kubeconfig("berlin", env.Via(gate, berlin.RESTConfig()))
	require.NoError(t, err)
	place(t, hub, "hub.yaml", "KUBECONFIG", base64.StdEncoding.EncodeToString(kubeconfig), "WEBREPOSITORY", chartRepository(t))
	logs, err := berlin.ServePodLogs(t.Context(), "node-1")
	require.NoError(t, err)
	for _, line := range strings.Split(served, "\n") {
		logs.Write(line)
	}
	place(t, berlin, "berlin.yaml")
	c := clientOf(t, hub.RESTConfig())
	for i := range cities {
		create(t, c, city(i))
	}
	built = &world{hub, berlin, gate}
	return *built
}

// served is what the Pods of Node node-1 have written.
const served = `WordPress not found in /var/www/html - copying now...
Complete! WordPress has been successfully copied to /var/www/html
[core:notice] [pid 1] AH00094: Command line: 'apache2 -D FOREGROUND'
10.4.2.7 - - "GET / HTTP/1.1" 200 58211 "-" "Mozilla/5.0"
10.4.2.7 - - "GET /wp-includes/css/dist/block-library/style.min.css HTTP/1.1" 200 15902
10.4.1.1 - - "GET /wp-login.php HTTP/1.1" 200 4377 "-" "kube-probe/1.36"
10.4.2.9 - - "POST /wp-cron.php HTTP/1.1" 200 259 "-" "WordPress/6.8"`

// chartRepository returns the address of a Helm repository that has two versions of the chart web.
func chartRepository(t testing.TB) string {
	t.Helper()
	root, err := env.Root()
	require.NoError(t, err)
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		_, err = charts.Push(filepath.Join(root, "examples", "charts", "web"), func(c *chart.Chart) { c.Metadata.Version = version })
		require.NoError(t, err)
	}
	return charts.URL()
}

var (
	ago  = regexp.MustCompile(`AGO\(([^)]+)\)`)
	logo = regexp.MustCompile(`LOGO\((\w+),(\w+)\)`)
)

// place creates the objects in a file of testdata with the status that they have there.
func place(t testing.TB, api *env.Cluster, file string, replace ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	text := ago.ReplaceAllStringFunc(strings.NewReplacer(replace...).Replace(string(content)), func(found string) string {
		d, err := time.ParseDuration(ago.FindStringSubmatch(found)[1])
		require.NoError(t, err)
		return time.Now().Add(-d).UTC().Format(time.RFC3339)
	})
	text = logo.ReplaceAllStringFunc(text, func(found string) string {
		of := logo.FindStringSubmatch(found)
		return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><rect width="48" height="48" rx="10" fill="#%s"/>`+
			`<text x="24" y="33" font-family="sans-serif" font-size="26" font-weight="700" text-anchor="middle" fill="#fff">%s</text></svg>`, of[1], of[2]))
	})
	c := clientOf(t, api.RESTConfig())
	var uids []string
	for _, one := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(strings.NewReplacer(uids...).Replace(one)), object), one)
		create(t, c, object)
		uids = append(uids, fmt.Sprintf("UID(%s/%s)", object.GetKind(), object.GetName()), string(object.GetUID()))
	}
}

// create creates an object with its status. It stays until the cluster is stopped or restored.
func create(t testing.TB, c client.Client, object client.Object) {
	t.Helper()
	wanted := object.DeepCopyObject().(client.Object)
	require.NoError(t, c.Create(t.Context(), object), object.GetName())
	wanted.SetResourceVersion(object.GetResourceVersion())
	if u, ok := wanted.(*unstructured.Unstructured); ok && u.Object["status"] == nil {
		return
	}
	require.NoError(t, c.Status().Update(t.Context(), wanted), object.GetName())
}

var cities = strings.Fields("amsterdam athens barcelona berlin bratislava brussels bucharest budapest copenhagen dublin frankfurt hamburg helsinki lisbon london madrid milan oslo paris prague rome stockholm vienna warsaw")

// offered is what is installed nearly everywhere.
var offered = []struct{ name, newest, older string }{
	{"cert-manager", "1.20.1", "1.18.4"}, {"ingress-nginx", "4.13.2", "4.12.0"}, {"prometheus", "3.11.0", "3.9.1"},
	{"loki", "6.40.0", "6.40.0"}, {"wordpress", "6.8.0", "6.7.2"}, {"guestbook", "5.0.0", "5.0.0"},
}

// city returns the i-th cluster of the fleet. Most are well; each kind of trouble is somewhere.
func city(i int) *v1alpha1.KubernetesCluster {
	name := cities[i]
	seen := metav1.NewTime(time.Now().Add(-10 * time.Second))
	k := &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{
			"environment": []string{"production", "production", "staging"}[i%3], "region": []string{"eu-central", "eu-west", "eu-north"}[i%3],
		}},
		Spec:   v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: name + "-kubeconfig"}},
		Status: v1alpha1.KubernetesClusterStatus{Version: []string{"v1.36.1", "v1.36.1", "v1.35.4"}[i%3], Reachable: true, LastSeen: &seen},
	}
	ready := metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "connected", LastTransitionTime: metav1.NewTime(time.Now().Add(-240 * time.Hour))}
	switch name {
	case "helsinki":
		lost := metav1.NewTime(time.Now().Add(-17 * time.Minute))
		k.Status.Reachable, k.Status.LastSeen = false, &lost
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Unreachable", "the API server does not answer: dial tcp 10.4.7.1:6443: i/o timeout"
		ready.LastTransitionTime = lost
	case "london":
		k.Spec.Paused = true
	case "prague":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionUnknown, "Progressing", "installing the agent"
	}
	k.Status.Conditions = []metav1.Condition{ready}
	for n, app := range offered {
		if n > 0 && (i+n)%(n+1) == 0 && name != "berlin" {
			continue
		}
		version, state := app.newest, metav1.ConditionTrue
		if (i*7+n*3)%11 == 0 {
			version = app.older
		}
		switch {
		case (i*5+n)%37 == 3, name == "berlin" && app.name == "wordpress":
			state = metav1.ConditionFalse
		case (i*3+n)%41 == 7:
			state = metav1.ConditionUnknown
		}
		if name == "berlin" && app.name == "wordpress" {
			version = app.newest
		}
		namespace := "platform"
		if n > 3 {
			namespace = "team-a"
		}
		k.Status.Installations = append(k.Status.Installations, v1alpha1.InstallationSummary{
			Namespace: namespace, Name: app.name, Definition: app.name, Version: version, Ready: state,
		})
	}
	k.Status.InstallationCount = int32(len(k.Status.Installations))
	return k
}

// behindGate returns a way to a cluster that can be closed, and the configuration of its administrator on that way.
func behindGate(t testing.TB, api *env.Cluster) (*env.Gate, *rest.Config) {
	t.Helper()
	gate, err := env.NewGate(api.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	return gate, env.Via(gate, api.RESTConfig())
}
