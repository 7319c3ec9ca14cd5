package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/render/helm"
)

// job is one run of the command.
type job struct {
	*options

	sources *installation.Sources
	local   installation.Local
	values  []map[string]any

	// lookup is set by requested.
	lookup *installation.Lookup
	// seen is the cluster that charts see; nil for none. It is set by requested if the user names the
	// cluster: a file may be for another one than that of the kubeconfig.
	seen *fleet.Cluster

	// warned are the warnings of warnOnce.
	warned []string
}

// render renders everything that was asked for.
func (j *job) render(ctx context.Context, args []string) ([]*installation.Objects, error) {
	if j.path != "" {
		objects, err := j.renderPath(ctx)
		return []*installation.Objects{objects}, err
	}
	wanted, err := j.requested(ctx, args)
	if err != nil {
		return nil, err
	}
	var rendered []*installation.Objects
	for _, object := range wanted {
		objects, err := j.renderOne(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kinds.Describe(object), err)
		}
		if objects != nil {
			rendered = append(rendered, objects)
		}
	}
	if len(rendered) == 0 {
		return nil, errors.New("the files hold neither an ApplicationInstallation nor a GitSync")
	}
	return rendered, nil
}

// renderPath renders a local folder.
func (j *job) renderPath(ctx context.Context) (*installation.Objects, error) {
	if _, err := os.Stat(filepath.Join(j.path, "Chart.yaml")); err == nil {
		namespace, err := j.namespace()
		if err != nil {
			return nil, err
		}
		var target *fleet.Cluster
		if j.env.NamesCluster() {
			if target, err = j.env.Target(ctx); err != nil {
				return nil, err
			}
		}
		o, err := j.chartOptions(target)
		if err != nil {
			return nil, err
		}
		return j.sources.RenderChart(ctx, j.path, helm.Options{
			ReleaseName: j.name, Namespace: namespace, Values: helm.MergeValues(j.values...),
			KubeVersion: o.KubeVersion, APIVersions: o.APIVersions, Cluster: o.Cluster,
		})
	}
	if len(j.values) > 0 || j.kubeVersion != "" {
		return nil, fmt.Errorf("--values and --kube-version are for charts: %s holds no Chart.yaml", j.path)
	}
	return installation.RenderFolder(j.path, "")
}

// chartOptions returns what charts see: a cluster if it is named, and the defaults of Helm else.
func (j *job) chartOptions(target *fleet.Cluster) (installation.Options, error) {
	options := installation.Options{}
	if target != nil {
		if err := options.See(target); err != nil {
			return options, err
		}
	}
	if j.kubeVersion != "" {
		options.KubeVersion, options.APIVersions = j.kubeVersion, nil
	}
	return options, nil
}

// requested returns the objects to render, from files or from a cluster, and sets lookup. Without a
// kubeconfig, everything that they refer to must be among the files.
func (j *job) requested(ctx context.Context, args []string) ([]*unstructured.Unstructured, error) {
	set, err := manifests.Read(append(j.files, j.definitions...), j.env.In)
	if err != nil {
		return nil, err
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	j.lookup = &installation.Lookup{Files: set.Objects, Local: j.local, SystemNamespace: j.env.SystemNamespace, Unknown: j.noFacts, Warn: j.warnOnce}
	if !j.offline && (len(args) > 0 || j.env.Configured()) {
		if j.lookup.Hub, err = j.env.Hub(); err != nil {
			return nil, err
		}
		if j.lookup.Target, err = j.env.Target(ctx); err != nil {
			return nil, err
		}
		j.lookup.Hub = j.lookup.Target.HubOf(j.lookup.Hub)
		if len(args) > 0 || j.env.NamesCluster() {
			j.seen, j.lookup.Placed = j.lookup.Target, true
		}
	}
	if len(args) > 0 {
		return j.live(ctx, args)
	}
	return j.inFiles(set)
}

// inFiles returns the objects of files. Those of ours that are to be rendered and name no namespace are
// in that of the command line.
func (j *job) inFiles(set *manifests.Set) ([]*unstructured.Unstructured, error) {
	wanted := make([]*unstructured.Unstructured, len(set.Objects))
	for i, object := range set.Objects {
		wanted[i] = object.Unstructured
		if renders(object.Unstructured) && object.GetNamespace() == "" {
			namespace, err := j.namespace() // only now: without need, no kubeconfig has to be readable
			if err != nil {
				return nil, err
			}
			object.SetNamespace(namespace)
		}
	}
	return wanted, nil
}

// namespace returns the namespace to render for where nothing names one. Offline, that is known from
// the command line only.
func (j *job) namespace() (string, error) {
	if !j.offline {
		name, _, err := j.env.Namespace()
		return name, err
	}
	name, explicit := j.env.NamespaceOffline()
	if !explicit {
		j.warnOnce("rendered for namespace %s where nothing names one: offline, no kubeconfig is read; name another one with -n", name)
	}
	return name, nil
}

// noFacts says why .Values.waybill.cluster is empty, and what to do about it.
func (j *job) noFacts(why string) {
	j.warnOnce("facts about the cluster are not known, so .Values.waybill.cluster has an empty name and version, and no labels: %s; "+
		"name the cluster with --cluster, or give waybill.cluster with --values", why)
}

// warnOnce warns, unless it has done so in the same words.
func (j *job) warnOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(j.warned, text) {
		j.warned = append(j.warned, text)
		j.env.Warnf("%s", text)
	}
}

// renders reports whether an object renders to others.
func renders(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.GroupVersion() == v1alpha1.GroupVersion && (gvk.Kind == v1alpha1.ApplicationInstallationKind || gvk.Kind == v1alpha1.GitSyncKind)
}

// live reads the objects that the arguments name.
func (j *job) live(ctx context.Context, args []string) ([]*unstructured.Unstructured, error) {
	objects, err := kinds.Resolve(ctx, j.env, j.lookup.Target, args)
	if err != nil {
		return nil, err
	}
	c, err := j.lookup.Target.Client()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, fmt.Errorf("get %s: %w", kinds.Describe(object), err)
		}
		if !renders(object) {
			return nil, fmt.Errorf("%s renders to nothing: name an ApplicationInstallation or a GitSync", kinds.Describe(object))
		}
		if object.GetKind() == v1alpha1.GitSyncKind && (j.version != "" || len(j.values) > 0) {
			return nil, fmt.Errorf("--version and --values are for installations: %s has neither", kinds.Describe(object))
		}
	}
	return objects, nil
}

// renderOne renders an installation or a GitSync; nil for objects of other kinds, which are only
// referred to.
func (j *job) renderOne(ctx context.Context, object *unstructured.Unstructured) (*installation.Objects, error) {
	switch object.GroupVersionKind() {
	case v1alpha1.GroupVersion.WithKind(v1alpha1.GitSyncKind):
		gs := &v1alpha1.GitSync{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, gs); err != nil {
			return nil, err
		}
		return j.sources.RenderSync(ctx, j.lookup, gs)
	case v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind):
		inst := &v1alpha1.ApplicationInstallation{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, inst); err != nil {
			return nil, err
		}
		resolved, err := j.lookup.Resolve(ctx, installation.Wish{Installation: inst, Version: j.version, Values: j.values})
		if err != nil {
			return nil, err
		}
		options, err := j.chartOptions(j.seen)
		if err != nil {
			return nil, err
		}
		return j.sources.Render(ctx, resolved, options)
	}
	return nil, nil
}
