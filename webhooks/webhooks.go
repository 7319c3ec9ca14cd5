package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
	"waybill.dev/waybill/webhooks/inject"
	"waybill.dev/waybill/webhooks/intake"
	"waybill.dev/waybill/webhooks/registration"
)

// Hooks returns the webhooks that are registered regardless of what is in the cluster: for
// creations and updates of each of our kinds, and for deletions of definitions, which may be in
// use.
func Hooks() registration.Hooks {
	const (
		create, update, remove = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
		namespaced, cluster    = admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope
	)
	writes := []admissionregistrationv1.OperationType{create, update}
	everything := []admissionregistrationv1.OperationType{create, update, remove}
	return registration.Hooks{
		InjectPath: inject.Path,
		Mutating: []registration.Hook{
			{Resource: applicationInstallationResource, Path: defaultPath(applicationInstallationResource), Operations: writes, Scope: namespaced},
			{Resource: kubernetesApplicationResource, Path: defaultPath(kubernetesApplicationResource), Operations: writes, Scope: namespaced},
			{Resource: statefulApplicationResource, Path: defaultPath(statefulApplicationResource), Operations: writes, Scope: namespaced},
			{Resource: applicationRollbackResource, Path: defaultPath(applicationRollbackResource), Operations: writes, Scope: namespaced},
		},
		Validating: []registration.Hook{
			protected("configmaps", writes),
			protected("secrets", writes),
			dependents(),
			{Resource: gitSyncResource, Path: validatePath(gitSyncResource), Operations: writes, Scope: namespaced},
			{Resource: kubernetesClusterResource, Path: validatePath(kubernetesClusterResource), Operations: writes, Scope: namespaced},
			{Resource: applicationDefinitionResource, Path: validatePath(applicationDefinitionResource), Operations: everything, Scope: cluster},
			{
				Resource: applicationInstallationResource, Path: validatePath(applicationInstallationResource), Operations: everything, Scope: namespaced,
				Condition: concernsInstallation,
			},
			{Resource: applicationResource, Path: validatePath(applicationResource), Operations: writes, Scope: namespaced},
			{Resource: kubernetesApplicationResource, Path: validatePath(kubernetesApplicationResource), Operations: writes, Scope: namespaced},
			{Resource: kubernetesApplicationResourceResource, Path: validatePath(kubernetesApplicationResourceResource), Operations: writes, Scope: namespaced},
			{Resource: hookActionResource, Path: validatePath(hookActionResource), Operations: writes, Scope: namespaced},
			{Resource: executionHookResource, Path: validatePath(executionHookResource), Operations: writes, Scope: namespaced},
			{Resource: statefulApplicationResource, Path: validatePath(statefulApplicationResource), Operations: writes, Scope: namespaced},
			{Resource: statefulApplicationClassResource, Path: validatePath(statefulApplicationClassResource), Operations: writes, Scope: cluster},
			{Resource: applicationSnapshotResource, Path: validatePath(applicationSnapshotResource), Operations: writes, Scope: namespaced},
			{Resource: applicationSnapshotClassResource, Path: validatePath(applicationSnapshotClassResource), Operations: writes, Scope: cluster},
			{Resource: applicationSnapshotContentResource, Path: validatePath(applicationSnapshotContentResource), Operations: writes, Scope: cluster},
			{
				Resource: applicationRollbackResource, Path: validatePath(applicationRollbackResource), Operations: everything, Scope: namespaced,
				Condition: concernsRollback,
			},
		},
	}
}

func defaultPath(resource string) string  { return "/default/" + resource }
func validatePath(resource string) string { return "/validate/" + resource }

// Setup registers the handlers of every kind with the webhook server of the manager, and adds a
// readiness check that the cache for look-ups is filled. index holds the Applications of the
// cluster.
func Setup(mgr manager.Manager, registry prometheus.Registerer, o Options, index *membership.Index) error {
	systemNamespace := o.Registration.Namespace // holds the Secrets of sources
	if err := register(registry, decisions, duration); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	reviews := &access{reviews: clientset.AuthorizationV1().SubjectAccessReviews()}
	known, err := newKinds(mgr.GetConfig())
	if err != nil {
		return err
	}
	inOrder := &order{cached: mgr.GetClient()}
	knownDefinitions := &definitions{cached: mgr.GetClient(), live: mgr.GetAPIReader()}
	installations := &applicationInstallations{
		access: reviews, definitions: knownDefinitions, defaultAccount: o.DefaultServiceAccount, systemNamespace: systemNamespace,
		schemas: newValuesSchemas(mgr.GetAPIReader(), systemNamespace), order: inOrder, data: &data{reader: mgr.GetAPIReader()},
	}
	mgr.GetWebhookServer().Register(validatePath(dependentsPath), &admission.Webhook{Handler: &removals{order: inOrder}})
	mgr.GetWebhookServer().Register(validatePath(protectedValuesPath), &admission.Webhook{
		Handler: &protectedValues{access: reviews, users: newValuesUsers(clientset.CoreV1().RESTClient()), live: mgr.GetAPIReader()},
	})
	secrets := &propagation{reader: mgr.GetAPIReader()}
	scheduled := &kubernetesApplications{access: reviews, secrets: secrets}
	if o.ParseKubeconfig != nil {
		scheduled.remote = newRemoteDryRun(mgr.GetAPIReader(), cmp.Or(o.RemoteDryRunTimeout, defaultDryRunTimeout), o.ParseKubeconfig)
	}
	apps := &applications{access: reviews, kinds: known, index: index}
	if o.PodDryRun {
		apps.dryRun = &podDryRun{client: clientset, timeout: cmp.Or(o.PodDryRunTimeout, defaultDryRunTimeout)}
	}
	h := handlers{mgr: mgr, screen: &screen{access: reviews, decoded: intake.NewDecoded()}}
	for _, err := range []error{
		serve(h, v1alpha1.GitSyncKind, gitSyncResource, &gitSyncs{access: reviews, systemNamespace: systemNamespace}),
		serve(h, v1alpha1.KubernetesClusterKind, kubernetesClusterResource, &kubernetesClusters{
			access: reviews, definitions: knownDefinitions, live: mgr.GetAPIReader(), systemNamespace: systemNamespace,
		}),
		serve(h, v1alpha1.ApplicationDefinitionKind, applicationDefinitionResource, &applicationDefinitions{access: reviews, systemNamespace: systemNamespace, order: inOrder}),
		serve(h, v1alpha1.ApplicationInstallationKind, applicationInstallationResource, installations),
		serve(h, v1alpha1.ApplicationKind, applicationResource, apps),
		serve(h, v1alpha1.KubernetesApplicationKind, kubernetesApplicationResource, scheduled),
		serve(h, v1alpha1.KubernetesApplicationResourceKind, kubernetesApplicationResourceResource, &kubernetesApplicationResources{access: reviews, secrets: secrets}),
		serve(h, v1alpha1.HookActionKind, hookActionResource, &hookActions{access: reviews}),
		serve(h, v1alpha1.ExecutionHookKind, executionHookResource, &executionHooks{access: reviews}),
		serveData(h, reviews, &data{reader: mgr.GetAPIReader()}),
	} {
		if err != nil {
			return err
		}
	}
	return addCatalog(mgr)
}

// serveData registers the kinds of stateful applications.
func serveData(h handlers, reviews *access, d *data) error {
	return errors.Join(
		serve(h, v1alpha1.StatefulApplicationKind, statefulApplicationResource, &statefulApplications{access: reviews, data: d}),
		serve(h, v1alpha1.StatefulApplicationClassKind, statefulApplicationClassResource, &statefulApplicationClasses{data: d}),
		serve(h, v1alpha1.ApplicationSnapshotKind, applicationSnapshotResource, &applicationSnapshots{access: reviews, data: d}),
		serve(h, v1alpha1.ApplicationSnapshotClassKind, applicationSnapshotClassResource, &applicationSnapshotClasses{data: d}),
		serve(h, v1alpha1.ApplicationSnapshotContentKind, applicationSnapshotContentResource, applicationSnapshotContents{}),
		serve(h, v1alpha1.ApplicationRollbackKind, applicationRollbackResource, &applicationRollbacks{access: reviews, data: d}),
	)
}

// handlers is what the handlers of all kinds share.
type handlers struct {
	mgr    manager.Manager
	screen *screen
}

// serve registers the validator of a kind and, if its rules have defaults, its defaulter.
func serve[T object](h handlers, kind, resource string, r rules[T]) error {
	var zero T
	typed, err := h.mgr.GetScheme().New(v1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		return fmt.Errorf("find type of %s: %w", kind, err)
	}
	obj, ok := typed.(T)
	if !ok {
		return fmt.Errorf("kind %s is a %T, not a %T", kind, typed, zero)
	}
	read := reader[T]{
		decoder: admission.NewDecoder(h.mgr.GetScheme()),
		empty:   func() T { return obj.DeepCopyObject().(T) },
	}
	server := h.mgr.GetWebhookServer()
	if d, ok := r.(defaults[T]); ok {
		server.Register(defaultPath(resource), &admission.Webhook{Handler: &defaulter[T]{kind: kind, defaults: d, screen: h.screen, reader: read}})
	}
	server.Register(validatePath(resource), &admission.Webhook{Handler: &validator[T]{kind: kind, rules: r, screen: h.screen, reader: read}})
	return nil
}

// catalogRetry is the interval between attempts to start the cache of a kind while the cluster does not
// have the CustomResourceDefinition.
const catalogRetry = 2 * time.Second

// addCatalog fills the caches of definitions and of installations. If the cluster does not know the kinds
// yet, the process neither exits nor refuses everything else.
func addCatalog(mgr manager.Manager) error {
	return errors.Join(
		addKind(mgr, "definitions", v1alpha1.ApplicationDefinitionKind, &v1alpha1.ApplicationDefinition{}),
		addKind(mgr, "installations", v1alpha1.ApplicationInstallationKind, &v1alpha1.ApplicationInstallation{}),
	)
}

// addKind fills the cache of one kind.
func addKind(mgr manager.Manager, name, kind string, object client.Object) error {
	var synced atomic.Bool
	fill := func(ctx context.Context) error {
		log := ctrl.LoggerFrom(ctx).WithName(name)
		return wait.PollUntilContextCancel(ctx, catalogRetry, true, func(ctx context.Context) (bool, error) {
			informer, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err != nil {
				log.Info("waiting for kind "+kind, "error", err.Error())
				return false, nil
			}
			synced.Store(toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
			return true, nil
		})
	}
	if err := mgr.Add(everywhere{run: fill}); err != nil {
		return fmt.Errorf("add cache of %s: %w", name, err)
	}
	return mgr.AddReadyzCheck(name, func(*http.Request) error {
		if !synced.Load() {
			return fmt.Errorf("application%s are not read yet", name)
		}
		return nil
	})
}

// everywhere is a runnable that runs in every process, not only in a leader.
type everywhere struct {
	run func(context.Context) error
}

func (e everywhere) Start(ctx context.Context) error {
	if err := e.run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (everywhere) NeedLeaderElection() bool { return false }
