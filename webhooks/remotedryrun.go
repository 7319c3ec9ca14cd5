package webhooks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

// remoteParallel is how many templates of one decision are tried at a time.
const remoteParallel = 8

// remoteDryRun tries templates out in the user cluster that an application is scheduled to. It only
// ever warns: the cluster may answer differently by the time the template is applied.
type remoteDryRun struct {
	reader client.Reader
	// timeout bounds the dry runs of one decision, including the connection, and each of their
	// requests.
	timeout time.Duration
	// parse reads a kubeconfig.
	parse func([]byte) (*rest.Config, error)
	known keyed.Map[types.NamespacedName, *remote]
}

// remote is a user cluster, reached by one kubeconfig.
type remote struct {
	hash    [sha256.Size]byte
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

func newRemoteDryRun(reader client.Reader, timeout time.Duration, parse func([]byte) (*rest.Config, error)) *remoteDryRun {
	return &remoteDryRun{reader: reader, timeout: timeout, parse: parse}
}

// try warns about every template that is new or differs from the one in old, and that the user
// cluster would currently refuse. It does nothing before the application is scheduled to a cluster.
func (d *remoteDryRun) try(ctx context.Context, obj, old *v1alpha1.KubernetesApplication) admission.Warnings {
	cluster := obj.Spec.ClusterName
	if d == nil || cluster == "" {
		return nil
	}
	changed := changedTemplates(obj, old)
	if len(changed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	attempts, ended := make(chan attempt, len(changed)), make(chan error, 1)
	go func() { // discovery takes no context
		ended <- d.tryAll(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: cluster}, changed, attempts)
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	if err != nil && ctx.Err() == nil {
		return admission.Warnings{fmt.Sprintf("templates could not be validated by a dry run in cluster %s: %v", cluster, err)}
	}
	t := &trial{templates: changed, refusals: make([]error, len(changed))}
	t.take(attempts)
	return t.warnings(cluster, d.timeout)
}

// tryAll tries the templates out until ctx ends. It sends, for each that was, what came of it.
func (d *remoteDryRun) tryAll(ctx context.Context, cluster types.NamespacedName, templates []v1alpha1.ResourceTemplate, attempts chan<- attempt) error {
	target, err := d.connect(ctx, cluster)
	if err != nil {
		return err
	}
	if target == nil { // there is nothing to try
		for i := range templates {
			attempts <- attempt{template: i}
		}
		return nil
	}
	group := errgroup.Group{}
	group.SetLimit(remoteParallel)
	for i := range templates {
		group.Go(func() error {
			err := target.refuses(ctx, templates[i].Spec.Template)
			if answered := new(apierrors.StatusError); ctx.Err() == nil || errors.As(err, &answered) {
				attempts <- attempt{i, err}
			}
			return nil
		})
	}
	return group.Wait() // refusals are not our errors
}

func changedTemplates(obj, old *v1alpha1.KubernetesApplication) []v1alpha1.ResourceTemplate {
	before := map[string]string{}
	if old != nil {
		for _, t := range old.Spec.ResourceTemplates {
			before[t.Metadata.Name] = string(t.Spec.Template.Raw)
		}
	}
	var changed []v1alpha1.ResourceTemplate
	for _, t := range obj.Spec.ResourceTemplates {
		if was, ok := before[t.Metadata.Name]; !ok || was != string(t.Spec.Template.Raw) {
			changed = append(changed, t)
		}
	}
	return changed
}

// connect returns the cluster with that name, with its existing connection unless its kubeconfig
// has changed. It returns nil for this very cluster, where our own rights say nothing about the
// rights that the template will be applied with.
func (d *remoteDryRun) connect(ctx context.Context, key types.NamespacedName) (*remote, error) {
	kc := &v1alpha1.KubernetesCluster{}
	if err := d.reader.Get(ctx, key, kc); err != nil {
		return nil, fmt.Errorf("get KubernetesCluster: %w", err)
	}
	switch {
	case kc.Spec.KubeconfigSecretRef == nil:
		return nil, nil
	case kc.Spec.Paused:
		return nil, errors.New("it is paused")
	case !kc.Status.Reachable:
		return nil, errors.New("it does not answer")
	}
	content, err := d.kubeconfig(ctx, kc)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(content)
	if known := d.known.Get(key); known != nil && known.hash == hash {
		return known, nil
	}
	made, err := d.build(content)
	if err != nil {
		return nil, err
	}
	made.hash = hash
	d.keep(ctx, key, made)
	return made, nil
}

// keep stores a new connection, and drops those to clusters that no longer exist.
func (d *remoteDryRun) keep(ctx context.Context, key types.NamespacedName, made *remote) {
	clusters := &v1alpha1.KubernetesClusterList{}
	err := d.reader.List(ctx, clusters)
	if err == nil { // otherwise the next call cleans up
		there := map[types.NamespacedName]bool{}
		for i := range clusters.Items {
			there[client.ObjectKeyFromObject(&clusters.Items[i])] = true
		}
		d.known.DropFunc(func(key types.NamespacedName, _ *remote) bool { return !there[key] })
	}
	d.known.Put(key, made)
}

func (d *remoteDryRun) kubeconfig(ctx context.Context, kc *v1alpha1.KubernetesCluster) ([]byte, error) {
	ref := kc.Spec.KubeconfigSecretRef
	secret := &corev1.Secret{}
	if err := d.reader.Get(ctx, types.NamespacedName{Namespace: kc.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("get its kubeconfig: %w", err)
	}
	content, key := ref.Find(secret.Data)
	if content == nil {
		return nil, fmt.Errorf("read its kubeconfig: Secret %s has no key %q", ref.Name, key)
	}
	return content, nil
}

func (d *remoteDryRun) build(kubeconfig []byte) (*remote, error) {
	config, err := d.parse(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read its kubeconfig: %w", err)
	}
	config.QPS, config.Timeout = -1, d.timeout
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return answers{base} })
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	// The transport adds the token to whatever it is asked for: a redirect would take it elsewhere.
	shared.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return newRemote(config, shared)
}

func newRemote(config *rest.Config, shared *http.Client) (*remote, error) {
	objects, err := dynamic.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, shared)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return &remote{dynamic: objects, mapper: mapper}, nil
}

// isRefusal reports whether an error is that the cluster rejects a template, rather than a problem
// of the cluster itself or of the caller.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized && code != http.StatusTooManyRequests
}

// refuses returns the cluster's answer to a dry run of a template, or why there is no answer. A
// kind or namespace that does not exist yet may come with the application, and is not a refusal.
func (r *remote) refuses(ctx context.Context, template v1alpha1.ObjectTemplate) error {
	if ctx.Err() != nil {
		return nil // the caller no longer waits
	}
	gvk := template.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find resource of kind %s: %w", gvk.Kind, err)
	}
	object, err := template.Object()
	if err != nil {
		return err
	}
	var objects dynamic.ResourceInterface = r.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		objects = r.dynamic.Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), metav1.NamespaceDefault))
	} else {
		object.SetNamespace("")
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, template.Metadata.Name, types.ApplyPatchType, data, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager, Force: ptr.To(true),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
