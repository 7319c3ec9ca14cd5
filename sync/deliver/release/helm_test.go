package release_test

import (
	"strconv"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"waybill.dev/waybill/sync/deliver/release"
)

// helm is what a user has who runs Helm by hand.
func (w *world) helm() *action.Configuration {
	w.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	file := w.cluster.KubeconfigFile()
	flags.KubeConfig, flags.Namespace = &file, &w.namespace
	cfg := &action.Configuration{}
	require.NoError(w, cfg.Init(flags, w.namespace, "secret", func(string, ...any) {}))
	return cfg
}

func (w *world) helmRollback(name string) {
	w.Helper()
	require.NoError(w, action.NewRollback(w.helm()).Run(name))
}

// leavePending leaves what a process leaves that is killed in the middle of installing d: a record, and some of the objects.
func (w *world) leavePending(d release.Desired, status string) {
	w.Helper()
	digest, err := d.Digest()
	require.NoError(w, err)
	cfg := w.helm()
	next := 1
	if last, err := cfg.Releases.Last(d.Name); err == nil {
		next = last.Version + 1
	}
	require.NoError(w, cfg.Releases.Create(&helmrelease.Release{
		Name: d.Name, Namespace: w.namespace, Version: next, Chart: d.Chart, Config: d.Values,
		Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: left-behind\n",
		Info:     &helmrelease.Info{Status: helmrelease.Status(status)},
		Labels: map[string]string{
			"apps.waybill.dev/owner-hash": d.OwnerHash,
			"apps.waybill.dev/release":    d.Name,
			"apps.waybill.dev/input":      strconv.Itoa(next) + "." + digest,
		},
	}))
}
