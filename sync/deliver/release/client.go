package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/manifest"
)

// parallelWrites is how many objects of one kind are written at a time.
const parallelWrites = 8

// client is what Helm's actions use to reach the cluster. It sends no requests but those that do
// the work: no OpenAPI document, no discovery, no check whether the server is reachable. It lives
// as long as one action.
type client struct {
	// ctx is the context of the action: Helm's interface does not pass one on.
	ctx     context.Context
	getter  getter
	dynamic dynamic.Interface
	// metadata is for writes of whose result nothing else is needed.
	metadata metadata.Interface
	memo     *Memo
	id       Identity

	// doing is Desired.Doing, and untouchedAt is Desired.UntouchedAt.
	doing       func(what string)
	untouchedAt func(manifest.ID) string

	// since is when the revision was made that drift is compared with.
	since time.Time
	// leftovers are earlier revisions that may have set what is no longer wanted. They are set
	// before the action runs.
	leftovers []recorded

	mu sync.Mutex
	// rendered is set once Helm has objects to work with: what fails before that failed in the
	// chart.
	rendered bool
	// target is the manifest that Helm is about to create, and targetObjects are its objects.
	target        string
	targetObjects []manifest.ID
	// tries says that Helm builds the next manifest only to see whether that can be, as it does before an upgrade,
	// and tried is what Build made of it, until Helm asks for it again.
	tries bool
	tried kube.ResourceList
	// failures are the errors that were returned to Helm, which does not pass on all of them.
	failures []error
	// gone are the objects that were already gone when they were to be deleted, until they are
	// created.
	gone map[manifest.ID]bool
	// written has the objects as they were created or updated.
	written map[manifest.ID]metav1.Object
	// untouched are the objects that an upgrade left as they were, without a request.
	untouched []manifest.ID
	// kept are the objects that were not deleted, and why.
	kept []Kept
	// warnings are the API server's warnings, and notes about what was left out.
	warnings []string
}

// Kept is an object of a release that an uninstall or an upgrade left in the cluster.
type Kept struct {
	ID  manifest.ID
	Why string
}

func newClient(ctx context.Context, t Target, id Identity) (*client, error) {
	c := &client{ctx: ctx, id: id, memo: NewMemo(), gone: map[manifest.ID]bool{}, written: map[manifest.ID]metav1.Object{}}
	config := bound(ctx, t.Config())
	config.WarningHandlerWithContext = warnings{c}
	c.getter = getter{target: t, config: config, mappings: &mappings{RESTMapper: t.Mapper()}}
	var err error
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	return c, nil
}

// warnings collects the API server's warnings.
type warnings struct{ client *client }

const maxWarnings = 20

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code == 299 && text != "" {
		w.client.warn(text)
	}
}

var _ rest.WarningHandlerWithContext = warnings{}

// during says what the action waits for while do runs.
func (c *client) during(what string, do func() error) error {
	if c.doing == nil {
		return do()
	}
	c.doing(what)
	defer c.doing("")
	return do()
}

func (c *client) warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.warnings {
		if known == text {
			return
		}
	}
	if len(c.warnings) < maxWarnings {
		c.warnings = append(c.warnings, text)
	}
}

// fail records an error and returns it.
func (c *client) fail(err error) error {
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failures = append(c.failures, err)
	}
	return err
}

// failure returns all recorded errors.
func (c *client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return join(c.failures)
}

func (c *client) isRendered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rendered
}

// IsReachable implements Helm's kube.Interface. An unreachable cluster shows with the first request
// that does something.
func (c *client) IsReachable() error { return nil }

// Build implements Helm's kube.Interface. If validate is set, Helm is about to create the objects,
// and every kind must be known; otherwise an object of an old manifest whose kind is gone is gone
// too. Checking the fields of objects is left to the API server.
func (c *client) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, c.fail(err)
	}
	if list := c.takeTried(string(text), validate); list != nil {
		return list, nil
	}
	list, err := c.build(strings.NewReader(c.memo.json(string(text))), "manifest", validate)
	if err == nil && validate {
		c.mu.Lock()
		c.rendered, c.target, c.targetObjects = true, string(text), idsOf(list)
		if c.tries {
			c.tries, c.tried = false, list
		}
		c.mu.Unlock()
	}
	return list, c.fail(err)
}

// takeTried returns what Build made of a manifest that Helm has tried, once; nil for any other.
func (c *client) takeTried(text string, validate bool) kube.ResourceList {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !validate || c.target != text {
		return nil
	}
	list := c.tried
	c.tried = nil
	return list
}

// objectsOf returns the objects of a manifest, which is not parsed again if Helm has just created it.
func (c *client) objectsOf(text string) ([]manifest.ID, error) {
	c.mu.Lock()
	known := c.rendered && c.target == text
	ids := slices.Clone(c.targetObjects)
	c.mu.Unlock()
	if known {
		return ids, nil
	}
	list, err := c.Build(strings.NewReader(text), false)
	return idsOf(list), err
}

// build parses manifests; source names them in errors.
func (c *client) build(reader io.Reader, source string, allKnown bool) (kube.ResourceList, error) {
	infos, err := resource.NewBuilder(c.getter).Unstructured().ContinueOnError().
		NamespaceParam(c.id.Namespace).DefaultNamespace().Flatten().
		Stream(reader, source).Do().Infos()
	if err == nil || allKnown {
		return infos, err
	}
	if others := utilerrors.FilterOut(err, meta.IsNoMatchError); others != nil {
		return nil, others
	}
	c.warn("skipped objects of a kind that the cluster no longer serves: " + err.Error())
	return infos, nil
}

// batches runs fn for all objects: consecutive objects of one kind in parallel, the kinds in the
// order of the list, which is Helm's. It returns all errors.
func (c *client) batches(list kube.ResourceList, fn func(*resource.Info) error) error {
	var errs []error
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end].Mapping.GroupVersionKind == list[start].Mapping.GroupVersionKind {
			end++
		}
		results := make([]error, end-start)
		var group errgroup.Group
		group.SetLimit(parallelWrites)
		for i, info := range list[start:end] {
			group.Go(func() error {
				results[i] = fn(info)
				return nil
			})
		}
		_ = group.Wait()
		errs = append(errs, results...)
		start = end
	}
	return join(errs)
}

// resource returns the client for the object of info.
func (c *client) resource(info *resource.Info) dynamic.ResourceInterface {
	all := c.dynamic.Resource(info.Mapping.Resource)
	if info.Namespaced() {
		return all.Namespace(info.Namespace)
	}
	return all
}

// object returns the object of info, which the builder makes unstructured.
func object(info *resource.Info) (*unstructured.Unstructured, error) {
	o, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s has the unexpected type %T", info.ObjectName(), info.Object)
	}
	return o, nil
}

// idOf returns the ID of the object of info.
func idOf(info *resource.Info) manifest.ID {
	gvk := info.Mapping.GroupVersionKind
	return manifest.ID{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: info.Namespace, Name: info.Name}
}

func idsOf(list kube.ResourceList) []manifest.ID {
	var ids []manifest.ID
	for _, info := range list {
		ids = append(ids, idOf(info))
	}
	return ids
}

// Wait implements Helm's kube.Interface. Waiting for health happens elsewhere, by watch.
func (c *client) Wait(kube.ResourceList, time.Duration) error { return nil }

// WaitWithJobs implements Helm's kube.Interface as Wait does.
func (c *client) WaitWithJobs(kube.ResourceList, time.Duration) error { return nil }

// errTests is the error for tests of charts: Helm's tests are for people to run.
var errTests = errors.New("tests of charts are not run")

// WaitAndGetCompletedPodPhase implements Helm's kube.Interface, which uses it for tests of charts.
func (c *client) WaitAndGetCompletedPodPhase(string, time.Duration) (corev1.PodPhase, error) {
	return corev1.PodUnknown, errTests
}

var (
	_ kube.Interface                    = (*client)(nil)
	_ kube.InterfaceExt                 = (*client)(nil)
	_ kube.InterfaceDeletionPropagation = (*client)(nil)
)
