package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/test/bomb"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// hubMemory is what waybill-sync may take in a container of the chart's default size, beside the two
// processes that it renders in.
const hubMemory = 768 << 20

// hostile is content that becomes large or takes long, and what is said of it.
type hostile struct {
	// name is that of the GitSync, or of the installation.
	name string
	// reason that the condition Ready gets, if it is known.
	reason string
}

// Everything that tenants, authors of charts and repositories can send is sent at once to a process of
// the container's size. What another tenant wants is delivered meanwhile, and the process never ends
// (P12).
func TestSync_isNotEndedByWhatItReads(t *testing.T) {
	s := newSetting(t, env.Options{Name: "hostile", Pods: true})
	s.lead(nil)
	t.Setenv("GOMEMLIMIT", fmt.Sprint(hubMemory*9/10))
	process := s.start()

	synced := s.hostileFolders()
	installed := append(s.hostileCharts(), s.hostileSources()...)
	installed = append(installed, s.hostileValues()...)
	flooding := s.hostileClusters()

	_, err := s.repo.Commit(t.Context(), map[string]string{"good/web.yaml": s.manifest("good")})
	require.NoError(t, err)
	s.Create(s.gitSync("good", "good"))
	hub.AwaitReady(s.World, &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "good"}})
	good := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "good"}}
	hub.AwaitReady(s.World, good)
	s.forgeRecord(good)

	for _, b := range synced {
		s.awaitFailure(&v1alpha1.GitSync{}, b)
	}
	for _, b := range installed {
		s.awaitFailure(&v1alpha1.ApplicationInstallation{}, b)
	}
	for _, b := range flooding {
		s.awaitFailure(&v1alpha1.KubernetesCluster{}, b)
	}
	hub.Reconcile(s.World, good)
	hub.AwaitReady(s.World, good)
	select {
	case <-process.Done():
		require.Fail(t, "the process ended", "%v", process.Err())
	default:
	}
	peak, err := process.PeakMemory()
	require.NoError(t, err)
	assert.Less(t, peak, int64(hubMemory), "%d MiB", peak>>20)
	t.Logf("the process took %d MiB", peak>>20)
}

// gitSync returns a GitSync of a folder of the repository.
func (s *setting) gitSync(name, folder string) *v1alpha1.GitSync {
	return &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.GitSyncSpec{
			URL: s.repo.URL(), Path: folder, Interval: metav1.Duration{Duration: time.Hour}, Timeout: metav1.Duration{Duration: 30 * time.Second},
			SecretRef: &v1alpha1.LocalReference{Name: "git"},
		},
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"

// hostileFolders commits folders that become large or take long, with a GitSync for each.
func (s *setting) hostileFolders() []hostile {
	s.T.Helper()
	laughs := configMap + "a: &a [" + strings.Repeat("x,", 200) + "]\nb: &b [" + strings.Repeat("*a,", 15) + "]\nc: [" + strings.Repeat("*b,", 15) + "]\n---\n"
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, laughs, fmt.Sprint("laugh-", i))
	}
	var list strings.Builder
	list.WriteString("apiVersion: v1\nkind: List\nmetadata: {name: all}\nitems:\n")
	for i := range 300 {
		fmt.Fprintf(&list, "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {}}\n", i)
	}
	folders := map[string]map[string]string{
		"laughs": {"a.yaml": many.String()},
		"dense":  {"a.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"x":[` + strings.Repeat("{},", 1_500_000) + `{}]}`},
		"endless": {
			"all.yaml": list.String(), "patch.yaml": "- {op: add, path: /data/key, value: other}",
			"kustomization.yaml": "resources: [all.yaml]\npatches:\n" + strings.Repeat("- {path: patch.yaml, target: {kind: ConfigMap}}\n", 15_000),
		},
		"doubling": {
			"a.yaml": fmt.Sprintf(configMap, "a") + "data: {a: " + strings.Repeat("x", 1000) + "}\n",
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n" +
				strings.Repeat("    - {op: copy, from: /data, path: /data/more}\n    - {op: copy, from: /data, path: /data/again}\n", 30),
		},
	}
	files := map[string]string{}
	for folder, contents := range folders {
		for name, content := range contents {
			files[folder+"/"+name] = content
		}
	}
	_, err := s.repo.Commit(s.T.Context(), files)
	require.NoError(s.T, err)
	var bombs []hostile
	for folder := range maps.Keys(folders) {
		s.Create(s.gitSync(folder, folder))
		bombs = append(bombs, hostile{name: folder})
	}
	return bombs
}

// template returns a change of a chart: its name, and its only template.
func template(name, text string) func(*chart.Chart) {
	return func(c *chart.Chart) {
		c.Metadata.Name, c.Schema = name, nil
		c.Templates = []*chart.File{{Name: "templates/bomb.yaml", Data: []byte(text)}}
	}
}

// hostileCharts offers and installs charts whose templates become large or take long.
func (s *setting) hostileCharts() []hostile {
	s.T.Helper()
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(s.T, err)
	s.T.Cleanup(charts.Stop)
	templates := map[string]string{
		"recursion": `{{ tpl .Values.bomb . }}`,
		"repeat":    `a: {{ repeat 2000000000 "a" }}`,
		"range":     `{{ range $i, $_ := until 20000000 }}{{ range until 20000000 }}{{ end }}{{ end }}`,
		"aliases":   "a: <no <no value>value>&a [x, x, x, x]\nb: [<no <no value>value>*a, <no <no value>value>*a]\n",
		"indented":  "kind: A\nx:\n" + strings.Repeat("- ", 5000) + "[" + strings.Repeat("1 #c\n,", 10_000) + "]\n",
		"deep":      `{{ fail "for all values" }}`,
		"growing":   `{{ $x := "xxxxxxxxxx" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`,
	}
	for name, text := range templates { // all of them before the index is read
		_, err := charts.Push("../../examples/charts/web", template(name, text))
		require.NoError(s.T, err)
	}
	var bombs []hostile
	for name := range templates {
		bombs = append(bombs, s.offer(name, charts.URL(), v1alpha1.InvalidChartReason))
	}
	return bombs
}

// offer offers a chart and installs it, within a short time.
func (s *setting) offer(name, url, reason string) hostile {
	s.T.Helper()
	s.Create(&v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			DefaultValues: &apiextensionsv1.JSON{Raw: []byte(`{"bomb":"{{ tpl .Values.bomb . }}"}`)},
			Versions: []v1alpha1.ApplicationVersion{{
				Version: "1.1.0",
				Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
					URL: url, ChartName: name, ChartVersion: "1.1.0",
				}}},
			}},
		},
	})
	s.Create(&v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: name, Version: "1.1.0"},
			DeployOptions:  &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Timeout: metav1.Duration{Duration: 20 * time.Second}}},
		},
	})
	return hostile{name, reason}
}

// hostileSources offers charts of repositories whose answers become large.
func (s *setting) hostileSources() []hostile {
	s.T.Helper()
	var bombs []hostile
	for name, write := range map[string]func(*env.HelmRepo) error{
		"index": func(r *env.HelmRepo) error {
			return r.Write("index.yaml", []byte("entries: {index: ["+strings.Repeat("{},", 10_000_000)+"]}"))
		},
		"archive": func(r *env.HelmRepo) error {
			return writeArchive(s.T, r, "archive", "templates/a.yaml", bomb.Part{Text: "\x00", Times: 1 << 30})
		},
		"defaults": func(r *env.HelmRepo) error {
			return writeArchive(s.T, r, "defaults", "values.yaml", bomb.Part{Text: "- {}\n", Times: 900_000})
		},
	} {
		charts, err := env.StartHelmRepo(env.Access{})
		require.NoError(s.T, err)
		s.T.Cleanup(charts.Stop)
		require.NoError(s.T, write(charts))
		bombs = append(bombs, s.offer(name, charts.URL(), v1alpha1.InvalidChartReason))
	}
	return bombs
}

// writeArchive writes a chart with a file of up to a gigabyte, which takes a megabyte as long as it is packed.
func writeArchive(t *testing.T, r *env.HelmRepo, name, file string, content bomb.Part) error {
	t.Helper()
	size := len(content.Text) * content.Times
	var head bytes.Buffer
	archive := tar.NewWriter(&head)
	about := "{apiVersion: v2, name: " + name + ", version: 1.1.0}"
	require.NoError(t, archive.WriteHeader(&tar.Header{Name: name + "/Chart.yaml", Mode: 0o600, Size: int64(len(about))}))
	_, err := archive.Write([]byte(about))
	require.NoError(t, err)
	require.NoError(t, archive.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o600, Size: int64(size)}))
	const block = 512 // of tar: a file fills its last one, and two empty ones are the end
	packed := bomb.Gzip(t, bomb.Part{Text: head.String(), Times: 1}, content, bomb.Part{Text: "\x00", Times: (block-size%block)%block + 2*block})
	require.NoError(t, r.Write(name+"-1.1.0.tgz", packed))
	return r.Write("index.yaml", fmt.Appendf(nil, "apiVersion: v1\nentries:\n  %[1]s:\n  - {name: %[1]s, version: 1.1.0, urls: [%[1]s-1.1.0.tgz]}\n", name))
}

// hostileValues installs charts with values that become large.
func (s *setting) hostileValues() []hostile {
	s.T.Helper()
	var bombs []hostile
	for _, v := range []struct{ name, definition, text, reason string }{
		{"values", "web", "a: [" + strings.Repeat("[],", 300_000) + "]", v1alpha1.InvalidValuesReason},
		// What is sent to the process that renders is not copied for each level.
		{"nested", "deep", strings.Repeat("{a: ", 4000) + strings.Repeat("x", 700<<10) + strings.Repeat("}", 4000), v1alpha1.InvalidChartReason},
	} {
		s.Create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: v.name, Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}},
			Data:       map[string]string{"values.yaml": v.text},
		})
		s.Create(&v1alpha1.ApplicationInstallation{
			ObjectMeta: metav1.ObjectMeta{Name: v.name},
			Spec: v1alpha1.ApplicationInstallationSpec{
				ApplicationRef: v1alpha1.ApplicationReference{Name: v.definition, Version: "1.1.0"},
				ValuesFrom:     []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: v.name}},
			},
		})
		bombs = append(bombs, hostile{v.name, v.reason})
	}
	return bombs
}

// hostileClusters registers user clusters whose API servers answer without end.
func (s *setting) hostileClusters() []hostile {
	s.T.Helper()
	var bombs []hostile
	for _, name := range []string{"flood-1", "flood-2", "flood-3"} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			known := map[string]string{
				"/readyz": "ok", "/version": `{"gitVersion":"v1.36.4"}`, "/api/v1/namespaces/kube-system": `{"metadata":{"uid":"` + name + `"}}`,
			}
			if answer, ok := known[r.URL.Path]; ok {
				_, _ = io.WriteString(w, answer)
				return
			}
			piece := []byte(strings.Repeat(`{"metadata":{}},`, 4<<10))
			_, err := io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[`)
			for sent := 0; err == nil && sent < 1<<30; sent += len(piece) {
				_, err = w.Write(piece)
			}
		}))
		s.T.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		kubeconfig, err := env.Kubeconfig(name, &rest.Config{
			Host: server.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		})
		require.NoError(s.T, err)
		s.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
		s.Create(&v1alpha1.KubernetesCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: name}},
		})
		bombs = append(bombs, hostile{name, v1alpha1.LimitExceededReason})
	}
	return bombs
}

// forgeRecord adds a record of Helm to an installation that becomes a hundred megabytes of empty hooks,
// and gigabytes once they are decoded.
func (s *setting) forgeRecord(inst *v1alpha1.ApplicationInstallation) {
	s.T.Helper()
	packed := bomb.Gzip(s.T, bomb.Part{Text: fmt.Sprintf(`{"name":%q,"version":999,"info":{"status":"deployed"},"hooks":[{}`, inst.Name), Times: 1},
		bomb.Part{Text: ",{}", Times: 40_000_000}, bomb.Part{Text: "]}", Times: 1})
	real := s.records()
	var labels map[string]string
	for _, record := range real {
		if record.Labels["name"] == inst.Name {
			labels = maps.Clone(record.Labels)
		}
	}
	require.NotNil(s.T, labels, "the release has a record")
	labels["version"] = "999"
	s.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.%s.v999", inst.Name), Labels: labels},
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed))},
	})
}

// awaitFailure waits until it is said that something cannot be used.
func (s *setting) awaitFailure(o reconcile.Object, b hostile) {
	s.T.Helper()
	o.SetNamespace(s.Namespace)
	o.SetName(b.name)
	got := hub.Await(s.World, o, b.name+" is not refused", func(o reconcile.Object) bool {
		return conditions.IsFalse(o, v1alpha1.ReadyCondition)
	})
	s.T.Logf("%s: %s: %s", b.name, conditions.GetReason(got, v1alpha1.ReadyCondition), conditions.GetMessage(got, v1alpha1.ReadyCondition))
	if b.reason != "" {
		assert.Equal(s.T, b.reason, conditions.GetReason(got, v1alpha1.ReadyCondition), b.name)
	}
}
