package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// containerMemory is what the chart gives the container, in bytes.
const containerMemory = 256 << 20

// application is a KubernetesApplication that holds x, as JSON.
func application(name, x string) []byte {
	return []byte(`{"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "KubernetesApplication", "metadata": {"name": "` + name + `"},
"spec": {"clusterSelector": {}, "resourceTemplates": [{"metadata": {"name": "a"},
"spec": {"template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": ` + x + `}}}]}}`)
}

// bombs are a megabyte each, which becomes thirty when it is decoded, or forty.
var bombs = map[string]string{
	"objects": "[" + strings.Repeat("{},", 333_333) + "{}]",
	"keys":    "[" + strings.Repeat(`{"a":0},`, 125_000) + "{}]",
	"numbers": "[" + strings.Repeat("1,", 500_000) + "1]",
}

// poster creates KubernetesApplications as some user.
type poster struct {
	client    rest.Interface
	namespace string
}

func (p poster) create(ctx context.Context, object []byte) error {
	return p.client.Post().AbsPath("/apis/apps.waybill.dev/v1alpha1/namespaces/"+p.namespace+"/kubernetesapplications").
		SetHeader("Content-Type", "application/json").Param("dryRun", "All").Body(object).Do(ctx).Error()
}

// newPoster returns one of a user with that right in the namespace, beside that to create them.
func newPoster(t *testing.T, cluster *env.Cluster, namespace, user string, further ...rbacv1.PolicyRule) poster {
	t.Helper()
	admin, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	create := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesapplications"}, Verbs: []string{"create"}}
	_, err = admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: append(further, create)}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := cluster.AddUser(user)
	require.NoError(t, err)
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	cluster.AwaitGranted(t, user, namespace, create)
	return poster{clientset.CoreV1().RESTClient(), namespace}
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peak returns how much memory the process has used at most, in bytes.
func peak(t *testing.T, process *env.Process) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(process.PID()) + "/status")
	require.NoError(t, err)
	match := peakLine.FindSubmatch(status)
	require.NotNil(t, match, "the kernel tells no VmHWM")
	kilobytes, err := strconv.ParseInt(string(match[1]), 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}

// Whatever tenants, and others who reach the port, send at once: the webhook stays within the memory
// of its container, and others are answered meanwhile.
func TestProgram_withstandsAFlood(t *testing.T) {
	bin, err := program.Build(t.Context(), program.Webhook)
	require.NoError(t, err)
	cluster := env.Start(t, env.Options{Name: "flood", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	admin, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	_, err = admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	use := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesclusters"}, Verbs: []string{"use"}}
	tenant, member := newPoster(t, cluster, "team", "tenant"), newPoster(t, cluster, "team", "member", use)

	t.Setenv("GOMEMLIMIT", strconv.Itoa(containerMemory/10*9)) // as in the container
	listen := env.Address(t)
	process, err := program.Start(t.Context(), program.Options{
		Name: program.Webhook, Bin: bin, Kubeconfig: cluster.KubeconfigFile(),
		Args: []string{"--url=https://" + listen, "--listen=" + listen, "--drain=0s", "--log-level=error"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() })
	require.NoError(t, member.create(t.Context(), application("normal", "1")))
	t.Logf("at rest: %d MiB", peak(t, process)>>20)

	for name, bomb := range bombs {
		flood(t, 8, func(i int) {
			err := tenant.create(t.Context(), application(fmt.Sprint("bomb-", i), bomb))
			assert.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		}, member)
		flood(t, 8, func(i int) {
			err := member.create(t.Context(), application(fmt.Sprint("bomb-", i), bomb))
			assert.True(t, apierrors.IsRequestEntityTooLargeError(err), "%s: %v", name, err)
		}, member)
		t.Logf("%s: %d MiB", name, peak(t, process)>>20)
	}
	strangers(t, "https://"+listen, member)
	t.Logf("strangers: %d MiB", peak(t, process)>>20)
	assert.Less(t, peak(t, process), int64(containerMemory))
	select {
	case <-process.Done():
		t.Error("the process has ended")
	default:
	}
}

// flood sends n at a time, twice, and something normal meanwhile.
func flood(t *testing.T, n int, send func(int), normal poster) {
	t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			send(i)
			send(i)
		})
	}
	assert.NoError(t, normal.create(t.Context(), application("normal", `{"a": "b"}`)), "another user is answered")
	group.Wait()
}

// strangers send reviews straight to the port, as large as they may be.
func strangers(t *testing.T, url string, normal poster) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for name, review := range map[string]string{
		"objects": `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "object": {"x": [` + strings.Repeat("{},", 2_000_000) + `{}]}}}`,
		"groups":  `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "userInfo": {"groups": [` + strings.Repeat(`"",`, 2_000_000) + `""]}}}`,
		"text":    `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "object": {"x": "` + strings.Repeat("y", 6_000_000) + `"}}}`,
	} {
		for _, path := range []string{"/validate/kubernetesapplications", "/default/applicationinstallations", "/inject"} {
			flood(t, 16, func(int) {
				response, err := client.Post(url+path, "application/json", bytes.NewReader([]byte(review)))
				if !assert.NoError(t, err, name) {
					return
				}
				defer response.Body.Close()
				_, _ = io.Copy(io.Discard, response.Body)
			}, normal)
		}
	}
}
