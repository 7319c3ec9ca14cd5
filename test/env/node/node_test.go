//go:build linux

package node_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/node"
	"waybill.dev/waybill/test/env/volumes"
)

func TestMain(m *testing.M) {
	env.StopOnSignal()
	code := m.Run()
	env.StopAll()
	os.Exit(code)
}

// The Node runs real processes: a database writes to a claim, and commands in its Pod see it.
func TestNode(t *testing.T) {
	node.Require(t)
	c, err := env.StartCluster(t.Context(), env.Options{Name: "node", Own: true})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	bin, err := env.NodeBinaries(t.Context())
	require.NoError(t, err)
	image, err := node.Postgres.Build(t.Context(), bin)
	require.NoError(t, err)
	started := time.Now()
	n, err := node.Start(t.Context(), c, node.Options{Images: []string{image}})
	require.NoError(t, err)
	t.Logf("Node Ready after %s", time.Since(started))
	v, err := volumes.StartOn(t.Context(), c, n)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.Log())
		}
	})
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	claim := volumes.Claim("default", "data", volumes.FirstConsumerClass)
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := volumes.Pod("default", "db", "data")
	container := &pod.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = node.PostgresName, corev1.PullNever
	container.Command = []string{"sh", "-ec", `
export PATH=$PATH:/usr/lib/postgresql/15/bin PGDATA=/data/pg
[ -s $PGDATA/PG_VERSION ] || initdb --auth=trust --encoding=UTF8 --locale=C >/dev/null
chmod 0700 $PGDATA
exec postgres -c listen_addresses= -c unix_socket_directories=/tmp`}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"/usr/lib/postgresql/15/bin/pg_isready", "-h", "/tmp"}},
	}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(999)), RunAsGroup: ptr.To(int64(999)), FSGroup: ptr.To(int64(999))}
	_, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	}, time.Minute, 100*time.Millisecond)
	t.Logf("PostgreSQL ready after %s", time.Since(started))
	result, err := v.Exec(t.Context(), "default", "db", "/usr/lib/postgresql/15/bin/psql -h /tmp -d postgres -Atc 'select 40+2'")
	require.NoError(t, err)
	assert.Equal(t, "42", strings.TrimSpace(result.Stdout), result.Stderr)
	resume, err := n.Pause()
	require.NoError(t, err)
	resume()
}
