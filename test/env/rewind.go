package env

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ahead is how many writes are made after a snapshot, so that a restored API server does not catch up
// with what was seen of it while it starts.
const ahead = 300

// Rewind restores what the cluster stores from a snapshot that it takes first, as an operator does:
// while the API server is stopped. Between the two, changes is called, and more is written.
// kube-controller-manager is not started again, and may miss what happens from then on. The cluster must
// not be borrowed: see Options.Own.
func (c *Cluster) Rewind(ctx context.Context, changes func()) error {
	if c.loan != nil {
		return errors.New("a borrowed cluster is not restored: set Options.Own")
	}
	data, snapshot := c.file("etcd"), c.file("snapshot")
	if err := c.offline(ctx, func() error { return os.CopyFS(snapshot, os.DirFS(data)) }); err != nil {
		return fmt.Errorf("take a snapshot: %w", err)
	}
	if err := c.advance(ctx); err != nil {
		return err
	}
	changes()
	err := c.offline(ctx, func() error {
		return errors.Join(os.RemoveAll(data), os.Rename(snapshot, data))
	})
	if err != nil {
		return fmt.Errorf("restore the snapshot: %w", err)
	}
	return nil
}

// offline does something while neither the API server nor etcd runs.
func (c *Cluster) offline(ctx context.Context, do func() error) error {
	if err := c.KillAPIServer(); err != nil {
		return err
	}
	c.mu.Lock()
	etcd := c.store
	c.mu.Unlock()
	if err := errors.Join(etcd.Kill(), do()); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// advance raises the resource version by writes.
func (c *Cluster) advance(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	for range ahead {
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "ahead-"}}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if err := maps.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
