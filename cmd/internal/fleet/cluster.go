package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// answerWithin bounds each request to a user cluster, so that one that hangs does not delay the
// answers of the others, unless --request-timeout sets a limit, as it does for the hub.
const answerWithin = 10 * time.Second

// secretReads is how many kubeconfigs are read at a time.
const secretReads = 16

// Cluster is one API server. It is safe for concurrent use.
type Cluster struct {
	// Key of the KubernetesCluster; zero for a hub that has no KubernetesCluster of its own.
	Key types.NamespacedName
	// Paused says that the KubernetesCluster is: no controller reconciles the installations there.
	Paused bool

	seed   bool     // it is a seed
	via    *Cluster // the seed that has the KubernetesCluster; nil for one of the hub
	shown  string   // name if there is no key
	config *rest.Config
	// kubeconfig reads how a user cluster is reached; nil for the Secret that its KubernetesCluster names.
	kubeconfig func(ctx context.Context, k *v1alpha1.KubernetesCluster) (*rest.Config, error)
	// bound returns the configuration of a user cluster with what its API server sends bounded; nil for no bounds. The clusters
	// of a seed have it, too.
	bound   func(*rest.Config) (*rest.Config, error)
	most    int   // how many objects a list has; 0 for any number
	invalid error // why there is no config
	connect func() (*connection, error)
}

type connection struct {
	http     *http.Client
	mapper   meta.RESTMapper
	client   client.Client
	metadata metadata.Interface
}

// NewHub returns the cluster behind a context of a kubeconfig. It is not contacted yet.
func NewHub(contextName string, config *rest.Config) *Cluster {
	hub := newCluster(types.NamespacedName{}, config)
	hub.shown = contextName
	return hub
}

func newCluster(key types.NamespacedName, config *rest.Config) *Cluster {
	return &Cluster{Key: key, config: config, connect: sync.OnceValues(func() (*connection, error) { return dial(config) })}
}

// newInvalid returns a cluster that cannot be reached, for the reason in err.
func newInvalid(key types.NamespacedName, err error) *Cluster {
	return &Cluster{Key: key, invalid: err, connect: func() (*connection, error) { return nil, err }}
}

func dial(config *rest.Config) (*connection, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	known, err := scheme()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: known, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	quiet := metadata.ConfigFor(config)
	quiet.WarningHandler = rest.NoWarnings{} // it lists all kinds: the user did not choose the deprecated ones
	m, err := metadata.NewForConfigAndClient(quiet, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &connection{http: httpClient, mapper: mapper, client: c, metadata: m}, nil
}

// scheme has our kinds and those of Kubernetes.
var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s))
})

// Name returns the name that people use for the cluster: that of its KubernetesCluster, or that of
// the kubeconfig's context for a hub that has none, and SEED/NAME for a cluster of a seed.
func (c *Cluster) Name() string {
	switch {
	case c.Key.Name == "":
		return c.shown
	case c.via != nil:
		return c.via.Name() + "/" + c.Key.Name
	default:
		return c.Key.Name
	}
}

// hubName returns what messages call the cluster as one that has KubernetesClusters.
func (c *Cluster) hubName() string {
	if c.seed {
		return c.Name()
	}
	return "the hub"
}

// Client returns a client that reads and writes without a cache.
func (c *Cluster) Client() (client.Client, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	return conn.client, nil
}

// Mapper returns the mapper from kinds to resources. It asks the API server group by group.
func (c *Cluster) Mapper() (meta.RESTMapper, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	return conn.mapper, nil
}

// REST returns the configuration and the HTTP client of the cluster, for requests that no other
// client can make. The caller owns the configuration.
func (c *Cluster) REST() (*rest.Config, *http.Client, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	return rest.CopyConfig(c.config), conn.http, nil
}

// As returns the cluster as another user, of these groups, sees it, for a caller who may impersonate both.
func (c *Cluster) As(user string, groups ...string) *Cluster {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	other := newCluster(c.Key, config)
	other.shown, other.Paused, other.seed, other.via, other.kubeconfig, other.bound, other.most = c.shown, c.Paused, c.seed, c.via, c.kubeconfig, c.bound, c.most
	return other
}

// ErrUnanswered is what Explain makes of an error, among others, if the API server did not answer.
var ErrUnanswered = errors.New("the API server does not answer")

// unanswered says that an API server did not answer.
type unanswered struct {
	said  string
	cause error
}

// Error implements error.
func (e *unanswered) Error() string { return e.said }

// Unwrap returns ErrUnanswered, and what has failed.
func (e *unanswered) Unwrap() []error { return []error{ErrUnanswered, e.cause} }

// Explain turns the error of a request that neither the cluster nor anything in between answered
// into one that says so, and is ErrUnanswered; other errors are returned unchanged.
func (c *Cluster) Explain(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Timeout() {
		return &unanswered{fmt.Sprintf("the API server of %s does not answer in time", c.Name()), ErrUnanswered}
	}
	return &unanswered{fmt.Sprintf("the API server of %s does not answer: %s", c.Name(), failed.Err), failed.Err}
}

// UserClusters returns the clusters of the hub, sorted by namespace and name, and those of each seed behind
// it. A cluster whose kubeconfig cannot be used is included and returns the error when it is used. The hub
// itself comes first, whether or not it has a KubernetesCluster.
func (c *Cluster) UserClusters(ctx context.Context) ([]*Cluster, error) {
	return c.UserClustersIf(ctx, Selection{})
}

// Selection says which user clusters are read; the zero value is for all.
type Selection struct {
	// Keep accepts clusters of the hub; nil for all. It is called for one after the other, and not for the hub itself.
	Keep func(*v1alpha1.KubernetesCluster) bool
	// Behind is how many clusters of seeds are read at most, each seed having an equal part of it; 0 for all. Where there are more
	// behind a seed, there is one that returns an error that says so.
	Behind int
}

// UserClustersIf is like UserClusters, with the clusters that only selects: of the others, not even the kubeconfig is read.
func (c *Cluster) UserClustersIf(ctx context.Context, only Selection) ([]*Cluster, error) {
	hub, others, err := c.list(ctx, only.Keep)
	if err != nil {
		return nil, err
	}
	return append([]*Cluster{hub}, withSeeds(ctx, others, only.Behind)...), nil
}

// list returns the hub with its KubernetesCluster, if it has one, and the clusters of those others that keep accepts; nil for all.
func (c *Cluster) list(ctx context.Context, keep func(*v1alpha1.KubernetesCluster) bool) (itself *Cluster, others []*Cluster, err error) {
	conn, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := conn.client.List(ctx, list); err != nil {
		return nil, nil, fmt.Errorf("list the KubernetesClusters of %s: %w", c.hubName(), c.Explain(err))
	}
	hub := *c
	found := make([]*Cluster, len(list.Items))
	var group errgroup.Group
	group.SetLimit(secretReads)
	for i := range list.Items {
		k := &list.Items[i]
		if k.Spec.KubeconfigSecretRef == nil {
			hub.Key, hub.Paused = client.ObjectKeyFromObject(k), k.Spec.Paused
			continue
		}
		if keep != nil && !keep(k) {
			continue
		}
		group.Go(func() error {
			found[i] = c.engage(ctx, k)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return &hub, slices.DeleteFunc(found, func(other *Cluster) bool { return other == nil }), nil
}

// UserCluster returns the user cluster of that name. An empty namespace means any, if there is only
// one cluster of that name: that takes the right to list KubernetesClusters, a namespace that to get this one. If there is none, the
// error is a NoClusterError.
func (c *Cluster) UserCluster(ctx context.Context, key types.NamespacedName) (*Cluster, error) {
	found, err := c.lookUp(ctx, key)
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, &NoClusterError{Name: key.Name, Hub: c.hubName()}
	case len(found) > 1:
		return nil, fmt.Errorf("KubernetesCluster %s is in the namespaces %s and %s: write NAMESPACE/%s", key.Name, found[0].Namespace, found[1].Namespace, key.Name)
	case found[0].Spec.KubeconfigSecretRef == nil:
		hub := *c
		hub.Key, hub.Paused = client.ObjectKeyFromObject(&found[0]), found[0].Spec.Paused
		return &hub, nil
	}
	other := c.engage(ctx, &found[0])
	return other, other.invalid
}

// NoClusterError says that a hub has no KubernetesCluster of a name.
type NoClusterError struct{ Name, Hub string }

func (e *NoClusterError) Error() string {
	return fmt.Sprintf("no KubernetesCluster %s in %s: `waybill get clusters -A` lists them", e.Name, e.Hub)
}

// lookUp returns the KubernetesClusters of a name: of all namespaces if the key has none.
func (c *Cluster) lookUp(ctx context.Context, key types.NamespacedName) ([]v1alpha1.KubernetesCluster, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	if key.Namespace != "" {
		k := v1alpha1.KubernetesCluster{}
		err := conn.client.Get(ctx, key, &k)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("get KubernetesCluster %s of %s: %w", key, c.hubName(), c.Explain(err))
		}
		return []v1alpha1.KubernetesCluster{k}, nil
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := conn.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the KubernetesClusters of %s: %w", c.hubName(), c.Explain(err))
	}
	return slices.DeleteFunc(list.Items, func(k v1alpha1.KubernetesCluster) bool { return k.Name != key.Name }), nil
}

// engage reads the kubeconfig of a user cluster.
func (c *Cluster) engage(ctx context.Context, k *v1alpha1.KubernetesCluster) *Cluster {
	key := client.ObjectKeyFromObject(k)
	via := c
	if !c.seed {
		via = nil
	}
	read := c.kubeconfig
	if read == nil {
		read = c.readKubeconfig
	}
	config, err := read(ctx, k)
	if err == nil && c.bound != nil {
		config, err = c.bound(config)
	}
	if err != nil {
		unusable := newInvalid(key, err)
		unusable.seed, unusable.via = k.IsSeed(), via
		return unusable
	}
	config.QPS, config.Timeout = -1, cmp.Or(c.config.Timeout, answerWithin)
	config.UserAgent, config.WarningHandler = c.config.UserAgent, c.config.WarningHandler
	other := newCluster(key, config)
	other.Paused, other.seed, other.via, other.bound = k.Spec.Paused, k.IsSeed(), via, c.bound
	if c.bound != nil {
		other.most = maxListed
	}
	return other
}

// Bounded returns the cluster with what the API servers of its user clusters send bounded, those of seeds included, and their
// redirects not followed: for a program that others share with those who run these clusters.
func (c *Cluster) Bounded() *Cluster {
	other := *c
	other.bound = cluster.NewBounds().Bound
	return &other
}

// WithKubeconfigs returns the cluster with another way into its user clusters than the Secrets that their KubernetesClusters
// name: read returns how one is reached. It may use the cluster that it is for.
func (c *Cluster) WithKubeconfigs(read func(ctx context.Context, k *v1alpha1.KubernetesCluster) (*rest.Config, error)) *Cluster {
	other := *c
	other.kubeconfig = read
	return &other
}

func (c *Cluster) readKubeconfig(ctx context.Context, k *v1alpha1.KubernetesCluster) (*rest.Config, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := conn.client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Spec.KubeconfigSecretRef.Name}, secret); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", c.Explain(err))
	}
	return ParseKubeconfig(secret, k.Spec.KubeconfigSecretRef)
}
