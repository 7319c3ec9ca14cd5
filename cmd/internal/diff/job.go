package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/manifest"
)

// job is one run of the command.
type job struct {
	*options
	// Place: Target is where installations are, and where files would be applied.
	fleet.Place

	// acting is target as the installation at hand sees it, which acts as account; set by actAs.
	acting  *fleet.Cluster
	account string

	sources *installation.Sources
	lookup  *installation.Lookup
	values  []map[string]any

	// wanted are the objects of --filename; the definitions of --definition are only in lookup.
	wanted []manifest.Object

	// provided is what wanted brings to the target, before what it delivers.
	provided provided

	// omitted counts what could not be compared.
	omitted int
}

// newJob returns a job at a place, with sources that the caller closes.
func newJob(place fleet.Place, sources *installation.Sources, o *options) *job {
	return &job{options: o, Place: place, sources: sources, provided: provided{}.with(nil), lookup: installation.NewLookup(place)}
}

// newCommandJob returns the job that a command line asks for.
func newCommandJob(ctx context.Context, o *options) (*job, error) {
	values, err := installation.ReadValues(o.values)
	if err != nil {
		return nil, err
	}
	wanted, err := readAll(o, o.files)
	if err != nil {
		return nil, err
	}
	definitions, err := readAll(o, o.definitions)
	if err != nil {
		return nil, err
	}
	place, err := o.env.Place(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return nil, err
	}
	j := newJob(place, sources, o)
	j.values, j.wanted, j.provided, j.lookup.Files = values, wanted, j.provided.with(wanted), append(definitions, wanted...)
	return j, nil
}

func (j *job) close() { _ = j.sources.Close() } // a failure to clean up is not worth an error

// omit warns about something that cannot be compared, so that the answer is incomplete.
func (j *job) omit(format string, args ...any) {
	j.Warn(format, args...)
	j.omitted++
}

// readAll reads files. It is an error if anything in them cannot be used, since a part of the
// answer would be missing.
func readAll(o *options, paths []string) ([]manifest.Object, error) {
	set, err := manifests.Read(paths, o.env.In)
	if err != nil {
		return nil, err
	}
	return set.Objects, set.Err()
}

// changes computes everything that was asked for.
func (j *job) changes(ctx context.Context, args []string) ([]change, error) {
	if len(args) == 0 {
		return j.ofFiles(ctx)
	}
	objects, err := kinds.Resolve(ctx, j.env, j.Target, args)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, errors.New("name one object")
	}
	c, err := j.Target.Client()
	if err != nil {
		return nil, err
	}
	object := objects[0]
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("get %s: %w", kinds.Describe(object), j.Target.Explain(err))
	}
	if err := j.fits(object); err != nil {
		return nil, err
	}
	return j.ofObject(ctx, object)
}

// ofObject returns what an object that delivers others would change.
func (j *job) ofObject(ctx context.Context, object *unstructured.Unstructured) ([]change, error) {
	switch object.GetKind() {
	case v1alpha1.GitSyncKind:
		return with(ctx, object, j.ofGitSync)
	case v1alpha1.ApplicationInstallationKind:
		return with(ctx, object, j.ofInstallation)
	case v1alpha1.KubernetesApplicationKind:
		return with(ctx, object, j.ofKubernetesApplication)
	case v1alpha1.KubernetesApplicationResourceKind:
		return with(ctx, object, j.ofResource)
	}
	return nil, fmt.Errorf("%s delivers nothing: name a GitSync, an ApplicationInstallation or a KubernetesApplication", kinds.Describe(object))
}

// fits returns why the flags do not fit an object: they would be ignored.
func (j *job) fits(object *unstructured.Unstructured) error {
	kind := object.GetKind()
	if j.path != "" && kind != v1alpha1.GitSyncKind {
		return fmt.Errorf("--path is for a GitSync: %s has no folder", kinds.Describe(object))
	}
	if (j.version != "" || len(j.values) > 0) && kind != v1alpha1.ApplicationInstallationKind {
		return fmt.Errorf("--version and --values are for installations: %s has neither", kinds.Describe(object))
	}
	return nil
}

// with converts an object to its type for of, and names the object in errors. What is being deleted
// delivers nothing any more; of knows what that means for an installation.
func with[T any](ctx context.Context, object *unstructured.Unstructured, of func(context.Context, *T) ([]change, error)) ([]change, error) {
	if object.GetDeletionTimestamp() != nil && object.GetKind() != v1alpha1.ApplicationInstallationKind {
		return nil, fmt.Errorf("%s is being deleted: nothing is applied for it any more", kinds.Describe(object))
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("read %s: %w", kinds.Describe(object), err)
	}
	changes, err := of(ctx, typed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kinds.Describe(object), err)
	}
	return changes, nil
}

// ofFiles applies the objects of the files to the target in a dry run, and adds what those among
// them would deliver, except for objects that deliver files themselves.
func (j *job) ofFiles(ctx context.Context) ([]change, error) {
	namespace, _, err := j.env.Namespace()
	if err != nil {
		return nil, err
	}
	d := delivery{cluster: j.Target, manager: cli.FieldManager, byHand: true, namespace: namespace}
	applied, err := d.predict(ctx, j.wanted)
	if err != nil {
		return nil, err
	}
	changes := slices.Clone(applied)
	for _, c := range applied {
		if c.refused {
			continue // so it delivers nothing
		}
		more, err := j.ofFile(ctx, c.after, namespace)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			j.omit("%s", err)
		}
		changes = append(changes, more...)
	}
	return changes, nil
}

// ofFile returns what an object of a file would deliver once it is in the target. The namespace is that
// of an object that names none.
func (j *job) ofFile(ctx context.Context, object *unstructured.Unstructured, namespace string) ([]change, error) {
	switch object.GroupVersionKind() {
	case v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind):
		return with(ctx, inNamespace(object, namespace), j.ofInstallation)
	case v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind):
		changes, err := with(ctx, inNamespace(object, namespace), j.ofKubernetesApplication)
		if errors.Is(err, errNotScheduled) {
			j.Warn("%s", err)
			return nil, nil
		}
		return changes, err
	}
	return nil, nil
}

// inNamespace returns an object of a namespaced kind with its namespace. It has none yet if its kind
// comes with the files, since no API server has seen it.
func inNamespace(object *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	if object.GetNamespace() == "" {
		object = object.DeepCopy() // the one that is shown stays as it is
		object.SetNamespace(namespace)
	}
	return object
}

// hubID returns the id of the hub that a cluster is; empty if waybill-sync has not run there yet.
func (j *job) hubID(ctx context.Context, cluster *fleet.Cluster) (string, error) {
	c, err := cluster.Client()
	if err != nil {
		return "", err
	}
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: j.SystemNamespace, Name: v1alpha1.HubConfigMap}
	if err := c.Get(ctx, key, config); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read the id of the hub from ConfigMap %s: %w", key, cluster.Explain(err))
	} else if apierrors.IsNotFound(err) {
		return "", nil
	}
	return config.Data[v1alpha1.HubIDKey], nil
}

// ownersHub returns the id of the hub for comparing owners. Without rights to read it, it is empty,
// and a warning says that objects of another hub are not distinguished.
func (j *job) ownersHub(ctx context.Context, cluster *fleet.Cluster) (string, error) {
	id, err := j.hubID(ctx, cluster)
	if apierrors.IsForbidden(err) {
		j.Warn("objects of another hub are not told apart from those of this one: %s", err)
		return "", nil
	}
	if err == nil && id == "" {
		j.Warn("objects of another hub are not told apart from those of this one: namespace %s of %s has no ConfigMap %s with its id",
			j.SystemNamespace, cluster.Name(), v1alpha1.HubConfigMap)
	}
	return id, err
}
