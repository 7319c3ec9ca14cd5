package bench

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// system is the namespace that Waybill runs in.
	system = "waybill-system"
	// syncUser is the user that waybill-sync runs as, so that its requests can be distinguished
	// from ours.
	syncUser = "waybill-sync"
	// webhookUser is the user that waybill-webhook runs as.
	webhookUser = "waybill-webhook"
	// probeEvery is how often a cluster may be probed without counting as a request.
	probeEvery = 30 * time.Second
)

// Resources that rows use.
var (
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	events        = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	pods          = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	services      = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	accounts      = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	replicaSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	deployments   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	ingresses     = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	gitSyncs      = v1alpha1.GroupVersion.WithResource("gitsyncs")
	clusters      = v1alpha1.GroupVersion.WithResource("kubernetesclusters")
	definitions   = v1alpha1.GroupVersion.WithResource("applicationdefinitions")
	installations = v1alpha1.GroupVersion.WithResource("applicationinstallations")
	applications  = v1alpha1.GroupVersion.WithResource("applications")
	placements    = v1alpha1.GroupVersion.WithResource("kubernetesapplications")
	placedObjects = v1alpha1.GroupVersion.WithResource("kubernetesapplicationresources")
	// reports are of a custom kind with a status, which Waybill knows nothing of.
	reports = schema.GroupVersionResource{Group: "bench.waybill.dev", Version: "v1", Resource: "reports"}
	// mutatingConfigurations tell API servers which objects to send to waybill-webhook.
	mutatingConfigurations = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
	}
)

// ourCRDs is the folder with Waybill's CRDs, and benchCRDs the one with that of reports.
const ourCRDs, benchCRDs = "../../charts/waybill/crds", "testdata/crds"

// hub is a cluster with Waybill's CRDs whose requests are counted.
type hub struct {
	*env.Cluster
	client dynamic.Interface
}

// startHub starts a hub for one row.
func startHub(b *testing.B, pods bool) *hub {
	b.Helper()
	h := startCluster(b, env.Options{Name: "hub", Pods: pods, CRDs: []string{ourCRDs}})
	h.namespace(b, system)
	return h
}

// startCluster starts a cluster for one row.
func startCluster(b testing.TB, o env.Options) *hub {
	b.Helper()
	o.Audit = true
	return hubOf(b, env.Start(b, o))
}

func hubOf(b testing.TB, cluster *env.Cluster) *hub {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	require.NoError(b, err)
	return &hub{Cluster: cluster, client: client}
}

func (h *hub) namespace(b testing.TB, name string) {
	b.Helper()
	h.create(b, namespaces, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}})
}

func (h *hub) create(b testing.TB, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	b.Helper()
	_, err := h.client.Resource(gvr).Namespace(o.GetNamespace()).Create(b.Context(), o, metav1.CreateOptions{})
	require.NoError(b, err)
}

// view opens a view of one kind in one namespace, or in all.
func (h *hub) view(b *testing.B, gvr schema.GroupVersionResource, namespace string) *observe.View {
	b.Helper()
	v, err := observe.Open(b.Context(), h.RESTConfig(), observe.Of{GroupVersionResource: gvr, Namespace: namespace})
	require.NoError(b, err)
	return v
}

// waitLimit is how long a row waits for one thing before it gives up.
const waitLimit = 3 * time.Minute

// await waits until exactly want objects of a view match.
func await(b *testing.B, v *observe.View, want int, match observe.Match) {
	b.Helper()
	awaitFor(b, waitLimit, v, want, match)
}

// awaitFor is like await, with another limit.
func awaitFor(b *testing.B, limit time.Duration, v *observe.View, want int, match observe.Match) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	require.NoError(b, v.Until(ctx, want, match))
}

// reconcile requests a reconciliation of one of our objects now, and returns the token that its
// status shows when that is done.
func (h *hub) reconcile(b *testing.B, gvr schema.GroupVersionResource, namespace, name string) string {
	b.Helper()
	token := newToken()
	require.NoError(b, h.requestReconcile(b.Context(), h.client.Resource(gvr).Namespace(namespace), name, token))
	return token
}

func newToken() string { return time.Now().Format(time.RFC3339Nano) }

func (h *hub) requestReconcile(ctx context.Context, client dynamic.ResourceInterface, name, token string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{v1alpha1.ReconcileAtAnnotation: token},
	}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// clear deletes all objects of a kind in a namespace and waits until they are gone.
func (h *hub) clear(b *testing.B, gvr schema.GroupVersionResource, namespace string, v *observe.View) {
	b.Helper()
	require.NoError(b, h.client.Resource(gvr).Namespace(namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	await(b, v, 0, observe.Any)
}

func (h *hub) mark(b *testing.B) env.AuditMark {
	b.Helper()
	mark, err := h.AuditMark(b.Context())
	require.NoError(b, err)
	return mark
}

// requests returns the requests of waybill-sync since a mark; see requestsOf.
func (h *hub) requests(b *testing.B, since env.AuditMark) requests {
	b.Helper()
	return h.requestsOf(b, syncUser, since)
}

// requestsOf returns the requests of a user since a mark, without watches, the lists that they
// begin with, leases, and one probe per probeEvery.
func (h *hub) requestsOf(b *testing.B, user string, since env.AuditMark) requests {
	b.Helper()
	all, err := h.Requests(b.Context(), since, env.ByUser(user), env.Calls)
	require.NoError(b, err)
	var counted requests
	var probed time.Time
	for _, r := range all {
		if r.URI == "/readyz" && r.Time.Sub(probed) >= probeEvery-time.Second {
			probed = r.Time
			continue
		}
		counted = append(counted, r)
	}
	return counted
}

// requests of one run.
type requests []env.Request

// count returns how many of the requests meet all conditions.
func (r requests) count(conditions ...func(env.Request) bool) float64 {
	n := 0
	for _, request := range r {
		if !slices.ContainsFunc(conditions, func(c func(env.Request) bool) bool { return !c(request) }) {
			n++
		}
	}
	return float64(n)
}

// of keeps requests for one kind.
func of(gvr schema.GroupVersionResource) func(env.Request) bool {
	return func(r env.Request) bool { return r.Group == gvr.Group && r.Resource == gvr.Resource }
}

// ofOne keeps requests for a single object: a list comes before a watch, once.
func ofOne(r env.Request) bool { return r.Name != "" }

// statusWrite keeps writes of the status of one of our own objects.
func statusWrite(r env.Request) bool {
	return r.Group == v1alpha1.GroupVersion.Group && r.Subresource == "status" && env.Writes(r)
}

// toObjects keeps requests for anything but our own kinds and events.
func toObjects(r env.Request) bool {
	return r.Group != v1alpha1.GroupVersion.Group && r.Resource != "events"
}

// readyAt matches one of our objects that is Ready at a git revision.
func readyAt(commit string) observe.Match {
	return func(o *observe.Object) bool {
		revision, _, _ := unstructured.NestedString(o.Object, "status", "revision") // none is another one
		return strings.HasSuffix(revision, commit) && observe.Ready(o)
	}
}

// handled matches one of our objects that has handled a token of reconcile.
func handled(token string) observe.Match {
	return observe.Both(observe.Ready, observe.Has(token, "status", "lastHandledReconcileAt"))
}
