package bench

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

const (
	// fleetSize is how many KubernetesClusters the hub of the dashboard has, each with installedEach installations,
	// of one of installedKinds definitions each.
	fleetSize, installedEach, installedKinds = 1000, 20, 30
	// dashboardUser is the account of the dashboard, and viewerGroup those who use it.
	dashboardUser, viewerGroup = "waybill-dashboard", "viewers"
	// viewerCount is how many users have streamsEach pages open each.
	viewerCount, streamsEach = 20, 50
	// firstPages is how often the first page is asked for in each run.
	firstPages = 200
	// maxDashboard is the most memory that the dashboard may take, in MiB.
	maxDashboard = 200
)

// sharedFleet is the hub that the rows of the dashboard share; see sharedApps.
var sharedFleet *env.Cluster

func stopFleet() {
	if sharedFleet != nil {
		sharedFleet.Stop()
		sharedFleet = nil
	}
}

// dashboard is a waybill-dashboard for 1,000 clusters, behind an authenticating proxy, which the benchmark is.
type dashboard struct {
	waybill
	hub     *hub
	address string
	proxy   *rest.Config
}

// startDashboard starts a fresh dashboard of the shared hub.
func startDashboard(b *testing.B) *dashboard {
	b.Helper()
	if sharedFleet == nil {
		cluster, err := env.StartCluster(b.Context(), env.Options{Name: "fleet", Audit: true, NoControllers: true, CRDs: []string{ourCRDs}})
		require.NoError(b, err)
		sharedFleet = cluster
		fillFleet(b, hubOf(b, cluster))
	}
	h := hubOf(b, sharedFleet)
	bin, err := program.Build(b.Context(), program.Dashboard)
	require.NoError(b, err)
	proxy, err := h.AddUser("proxy")
	require.NoError(b, err)
	authority := filepath.Join(b.TempDir(), "proxy-ca.crt")
	require.NoError(b, os.WriteFile(authority, proxy.CAData, 0o600))
	address, err := env.FreeAddress()
	require.NoError(b, err)
	process, err := program.Start(b.Context(), program.Options{
		Name: program.Dashboard, Bin: bin, Kubeconfig: h.kubeconfigOf(b, dashboardUser),
		Args: []string{"--url=https://" + address, "--listen=" + address, "--requestheader-client-ca-file=" + authority},
	})
	require.NoError(b, err)
	return &dashboard{waybill: stopAfterRow(b, process), hub: h, address: address, proxy: proxy}
}

// fillFleet creates the clusters, and lets viewers see them.
func fillFleet(b *testing.B, h *hub) {
	b.Helper()
	h.namespace(b, system)
	require.NoError(b, parallel(fleetSize, func(i int) error {
		in := h.client.Resource(clusters).Namespace(system)
		k := fleetCluster(i)
		if _, err := in.Create(b.Context(), k, metav1.CreateOptions{}); err != nil {
			return err
		}
		return setClusterStatus(b.Context(), h, k.GetName(), clusterStatus(i))
	}))
	client, err := kubernetes.NewForConfig(h.RESTConfig())
	require.NoError(b, err)
	see := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	_, err = client.RbacV1().ClusterRoles().Create(b.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewerGroup}, Rules: []rbacv1.PolicyRule{see}}, metav1.CreateOptions{})
	require.NoError(b, err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(b.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: viewerGroup}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewerGroup},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: viewerGroup}},
	}, metav1.CreateOptions{})
	require.NoError(b, err)
}

func fleetCluster(i int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KubernetesClusterKind,
		"metadata": map[string]any{
			"name": fmt.Sprintf("cluster-%04d", i), "namespace": system,
			"labels": map[string]any{"environment": []any{"production", "staging"}[i%2], "region": fmt.Sprintf("region-%d", i%10)},
		},
		"spec": map[string]any{"kubeconfigSecretRef": map[string]any{"name": fmt.Sprintf("cluster-%04d", i)}},
	}}
}

// clusterStatus is the status of a cluster as waybill-sync writes it. Some installations are not ready, some are of older
// versions, and their names are as long as names are.
func clusterStatus(i int) map[string]any {
	var installed []any
	for n := range installedEach {
		kind, state := (i+n)%installedKinds, "True"
		if (i*7+n)%50 == 0 {
			state = "False"
		}
		installed = append(installed, map[string]any{
			"namespace": fmt.Sprintf("team-%02d", n), "name": fmt.Sprintf("application-%02d", kind), "definition": fmt.Sprintf("application-%02d", kind),
			"version": fmt.Sprintf("%d.%d.%d", kind%9+1, (i+n)%3, i%10), "ready": state,
		})
	}
	return map[string]any{
		"version": fmt.Sprintf("v1.36.%d", i%4), "reachable": true, "lastSeen": "2026-01-02T03:04:05Z",
		"installations": installed, "installationCount": int64(installedEach),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "connected", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}},
	}
}

func setClusterStatus(ctx context.Context, h *hub, name string, status map[string]any) error {
	patch, err := (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KubernetesClusterKind, "status": status,
	}}).MarshalJSON()
	if err != nil {
		return err
	}
	_, err = h.client.Resource(clusters).Namespace(system).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// viewer is a browser of one user, with one connection by HTTP/2.
func (d *dashboard) viewer(b *testing.B) *http.Client {
	b.Helper()
	pair, err := tls.X509KeyPair(d.proxy.CertData, d.proxy.KeyData)
	require.NoError(b, err)
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}, //nolint:gosec // the certificate has no known authority
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // we count what is sent
	}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask requests a path as a user.
func (d *dashboard) ask(ctx context.Context, client *http.Client, user, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Remote-User", user)
	request.Header.Set("X-Remote-Group", viewerGroup)
	request.Header.Set("Accept-Encoding", "gzip")
	return client.Do(request)
}

// read requests a page, and returns it and how many bytes it has taken.
func (d *dashboard) read(b *testing.B, client *http.Client, user, path string) (page string, size int) {
	b.Helper()
	response, err := d.ask(b.Context(), client, user, path)
	require.NoError(b, err)
	defer func() { _ = response.Body.Close() }()
	sent, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", sent)
	require.Equal(b, "gzip", response.Header.Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(strings.NewReader(string(sent)))
	require.NoError(b, err)
	content, err := io.ReadAll(unzipped)
	require.NoError(b, err)
	return string(content), len(sent)
}

// awaitRead waits until the dashboard has read the fleet.
func (d *dashboard) awaitRead(b *testing.B, client *http.Client) {
	b.Helper()
	require.Eventually(b, func() bool {
		page, _ := d.read(b, client, "user-0", "/")
		return strings.Contains(page, fmt.Sprintf("of %d", fleetSize))
	}, waitLimit, 100*time.Millisecond)
}

// dashboardFirstPage measures the first page of a fleet of 1,000 clusters with 20,000 installations.
func dashboardFirstPage(b *testing.B, s *results) {
	d := startDashboard(b)
	client := d.viewer(b)
	d.awaitRead(b, client)
	users := make([]string, viewerCount) // one would be told to ask more slowly
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
		d.read(b, client, users[i], "/") // what they may see is asked for once
	}
	var took, size samples
	for b.Loop() {
		for i := range firstPages {
			began := time.Now()
			_, sent := d.read(b, client, users[i%len(users)], "/")
			took.add(float64(time.Since(began).Microseconds()) / 1000)
			size.add(float64(sent) / 1000)
		}
	}
	s.atMost("", took.percentile(99), "ms", 300)
	s.inform("p50", took.median(), "ms")
	s.atMost("size", size.max(), "kB", 200)
	s.atMost("rss", d.peak(b), "MiB", maxDashboard)
}

// dashboardChange measures when 1,000 open pages are notified of a change.
func dashboardChange(b *testing.B, s *results) {
	d := startDashboard(b)
	d.awaitRead(b, d.viewer(b))
	told := make(chan time.Time, viewerCount*streamsEach)
	for i := range viewerCount {
		client := d.viewer(b)
		for range streamsEach {
			d.listen(b, client, fmt.Sprintf("user-%d", i), told)
		}
	}
	n := 0
	var took samples
	for b.Loop() {
		n++
		status := clusterStatus(n)
		began := time.Now()
		require.NoError(b, setClusterStatus(b.Context(), d.hub, "cluster-0000", status))
		for range viewerCount * streamsEach {
			select {
			case at := <-told:
				took.add(at.Sub(began).Seconds())
			case <-time.After(waitLimit):
				b.Fatal("a stream was told of nothing")
			}
		}
	}
	s.atMost("", took.percentile(99), "s", 1)
	s.inform("p50", took.median(), "s")
	s.atMost("rss", d.peak(b), "MiB", maxDashboard)
}

// listen opens the stream of a page, and reports when it is notified of a change. It returns when the stream is connected.
func (d *dashboard) listen(b *testing.B, client *http.Client, user string, told chan<- time.Time) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	response, err := d.ask(ctx, client, user, "/live?kind="+v1alpha1.KubernetesClusterKind)
	require.NoError(b, err)
	b.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	require.Equal(b, http.StatusOK, response.StatusCode)
	lines := bufio.NewScanner(response.Body)
	require.True(b, lines.Scan(), "it is connected")
	go func() {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: change") {
				told <- time.Now()
			}
		}
	}()
}

// dashboardIdle measures that nothing is asked of the hub while nothing changes and no page is open; and what is asked for
// those who look, whose rights may change.
func dashboardIdle(b *testing.B, s *results) {
	d := startDashboard(b)
	client := d.viewer(b)
	d.awaitRead(b, client)
	<-time.After(settling)
	var idle samples
	for b.Loop() {
		idle.add(d.requestsWithin(b, window))
	}
	told := make(chan time.Time, 10)
	for range 10 {
		d.listen(b, client, "user-0", told)
	}
	reviews := d.requestsWithin(b, time.Minute)
	require.Positive(b, reviews, "no user's rights were reviewed: the windows say nothing")
	s.atMost("", idle.max(), "requests", 0)
	s.inform("viewer", reviews, "requests/min")
	s.atMost("rss", d.peak(b), "MiB", maxDashboard)
}

// requestsWithin returns how many requests the dashboard sends to the hub in some time.
func (d *dashboard) requestsWithin(b *testing.B, some time.Duration) float64 {
	b.Helper()
	mark := d.hub.mark(b)
	<-time.After(some)
	return d.hub.requestsOf(b, dashboardUser, mark).count()
}
