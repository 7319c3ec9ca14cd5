package env

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// restoreAtOnce is how many keys one request to etcd changes.
	restoreAtOnce = 1000
	// restoreRounds bounds how often what the controllers write meanwhile is looked for.
	restoreRounds = 20
	// insists is how often something is undone that the controllers write again.
	insists = 2
)

// heartbeats are written all the time, by the control plane itself.
var heartbeats = []string{"/registry/leases/kube-system/", "/registry/leases/kube-node-lease/", "/registry/masterleases/"}

// baseline is the state of a cluster that restore brings back.
type baseline struct {
	entries map[string]etcdEntry // by key
	groups  []byte               // of the API, as the API server lists them
}

// etcdEntry is what etcd's JSON gateway returns for a key, and takes. Keys and values are []byte, which
// JSON has in base64, as the gateway does.
type etcdEntry struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value,omitempty"`
	ModRevision string `json:"mod_revision,omitempty"`
}

type etcdOperation struct {
	Put    *etcdEntry `json:"request_put,omitempty"`
	Delete *etcdEntry `json:"request_delete_range,omitempty"`
}

// remember returns the state of the cluster as it is.
func (c *Cluster) remember(ctx context.Context) (*baseline, error) {
	entries, err := c.etcdEntries(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("remember cluster %s: %w", c.options.Name, err)
	}
	groups, err := c.groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("remember cluster %s: %w", c.options.Name, err)
	}
	return &baseline{entries: entries, groups: groups}, nil
}

// restore brings back the state that was remembered: in etcd, where no finalizer, controller or webhook
// is in the way, and all watches are notified. It returns when the API server serves that state.
func (c *Cluster) restore(ctx context.Context, to *baseline) error {
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	remove := c.volumeDirectories(ctx)
	restored, undone := false, map[string]int{}
	for range restoreRounds {
		changed, err := c.restoreRound(ctx, to, undone)
		if err != nil {
			return fmt.Errorf("restore cluster %s: %w", c.options.Name, err)
		}
		if restored = changed == 0; restored {
			break
		}
		if err := c.awaitRestored(ctx, to); err != nil {
			return fmt.Errorf("restore cluster %s: %w", c.options.Name, err)
		}
	}
	for _, dir := range remove {
		_ = os.RemoveAll(dir)
	}
	if !restored {
		return fmt.Errorf("restore cluster %s: its controllers keep writing", c.options.Name)
	}
	return nil
}

// restoreRound undoes what is different, and returns how many keys those were. undone counts how often
// that was done to a key.
func (c *Cluster) restoreRound(ctx context.Context, to *baseline, undone map[string]int) (int, error) {
	now, err := c.etcdEntries(ctx, true)
	if err != nil {
		return 0, err
	}
	var operations []etcdOperation
	insisted := false
	for key := range differences(now, to.entries) {
		if undone[key]++; undone[key] > insists {
			insisted = true
		}
		if entry, known := to.entries[key]; known {
			operations = append(operations, etcdOperation{Put: &etcdEntry{Key: entry.Key, Value: entry.Value}})
		} else {
			operations = append(operations, etcdOperation{Delete: &etcdEntry{Key: now[key].Key}})
		}
	}
	if insisted {
		return len(operations), c.adopt(ctx, to, undone)
	}
	for some := range slices.Chunk(operations, restoreAtOnce) {
		revision, err := c.etcdChange(ctx, some)
		if err != nil {
			return 0, err
		}
		for _, o := range some {
			if o.Put != nil {
				o.Put.ModRevision = revision
				to.entries[string(o.Put.Key)] = *o.Put
			}
		}
	}
	return len(operations), nil
}

// differences returns the keys that only one has, or that have changed.
func differences(now, before map[string]etcdEntry) map[string]bool {
	keys := map[string]bool{}
	for key := range now {
		if _, known := before[key]; !known && !isHeartbeat(key) {
			keys[key] = true
		}
	}
	for key, entry := range before {
		if now[key].ModRevision != entry.ModRevision && !isHeartbeat(key) {
			keys[key] = true
		}
	}
	return keys
}

// adopt accepts what the controllers write again and again: they had not come to it when the cluster was
// remembered.
func (c *Cluster) adopt(ctx context.Context, to *baseline, undone map[string]int) error {
	now, err := c.etcdEntries(ctx, false)
	if err != nil {
		return err
	}
	for key, times := range undone {
		if times <= insists {
			continue
		}
		if entry, there := now[key]; there {
			to.entries[key] = entry
		} else {
			delete(to.entries, key)
		}
	}
	return nil
}

func isHeartbeat(key string) bool {
	for _, prefix := range heartbeats {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// awaitRestored waits until the API server's own caches have what etcd has, and its groups are those of
// before: the kinds of CRDs that are gone are not served any more.
func (c *Cluster) awaitRestored(ctx context.Context, to *baseline) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	// A list that names no resource version waits for the cache.
	for _, list := range []func() error{
		func() error { _, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); return err },
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
			return err
		},
		func() error {
			_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
			return err
		},
		func() error {
			_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
			return err
		},
	} {
		if err := list(); err != nil {
			return err
		}
	}
	return c.apiServer.until(ctx, "groups of the API", func(ctx context.Context) error {
		groups, err := c.groups(ctx)
		if err == nil && !bytes.Equal(groups, to.groups) {
			err = fmt.Errorf("there are others than before: %s", groups)
		}
		return err
	})
}

// groups returns the groups and kinds of the API as the API server lists them.
func (c *Cluster) groups(ctx context.Context) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept", "application/json").DoRaw(ctx)
}

// volumeDirectories returns the directories of the volumes that there are.
func (c *Cluster) volumeDirectories(ctx context.Context) []string {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // a cluster that does not answer is a cluster under test
	}
	var dirs []string
	for _, v := range volumes.Items {
		if v.Spec.HostPath != nil && strings.HasPrefix(v.Spec.HostPath.Path, hostPathRoot) {
			dirs = append(dirs, filepath.Clean(v.Spec.HostPath.Path))
		}
	}
	return dirs
}

// etcdEntries returns all that Kubernetes keeps in etcd, by key.
func (c *Cluster) etcdEntries(ctx context.Context, withoutValues bool) (map[string]etcdEntry, error) {
	var answer struct {
		Entries []etcdEntry `json:"kvs"`
	}
	err := c.etcd(ctx, "range", map[string]any{
		"key": []byte("/registry/"), "range_end": []byte("/registry0"), "keys_only": withoutValues,
	}, &answer)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]etcdEntry, len(answer.Entries))
	for _, entry := range answer.Entries {
		entries[string(entry.Key)] = entry
	}
	return entries, nil
}

// etcdKeys returns the keys below all of the folders, which end with a slash.
func (c *Cluster) etcdKeys(ctx context.Context, folders []string) ([]string, error) {
	type ranged struct {
		Range map[string]any `json:"request_range"`
	}
	var asked []ranged
	for _, folder := range folders {
		end := folder[:len(folder)-1] + "0" // which comes next after a slash
		asked = append(asked, ranged{map[string]any{"key": []byte(folder), "range_end": []byte(end), "keys_only": true}})
	}
	var answer struct {
		Responses []struct {
			Range struct {
				Entries []etcdEntry `json:"kvs"`
			} `json:"response_range"`
		} `json:"responses"`
	}
	if err := c.etcd(ctx, "txn", map[string]any{"success": asked}, &answer); err != nil {
		return nil, err
	}
	var keys []string
	for _, response := range answer.Responses {
		for _, entry := range response.Range.Entries {
			keys = append(keys, string(entry.Key))
		}
	}
	return keys, nil
}

// etcdChange carries out operations, and returns the revision that they make.
func (c *Cluster) etcdChange(ctx context.Context, operations []etcdOperation) (string, error) {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
		Succeeded bool `json:"succeeded"`
	}
	err := c.etcd(ctx, "txn", map[string]any{"success": operations}, &answer)
	if err == nil && !answer.Succeeded {
		err = fmt.Errorf("etcd carried out none of %d operations", len(operations))
	}
	return answer.Header.Revision, err
}

// etcd calls a method of etcd's JSON gateway.
func (c *Cluster) etcd(ctx context.Context, method string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	response, err := c.etcdClient().Do(request)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", strconv.Itoa(response.StatusCode), answer)
	}
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	return nil
}
