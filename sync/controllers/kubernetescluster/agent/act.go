package agent

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render/helm"
)

// Acted is how an action ended.
type Acted struct {
	// Err is why what is wanted is not there. It says how to react.
	Err error
	// Agent is what is there now, for the status; nil if there is nothing.
	Agent *v1alpha1.ClusterAgentStatus
	// Wrote says that another revision was made.
	Wrote bool
	// Reserved says that ClusterRoles for people are left out, as admission has not answered yet.
	Reserved bool
	// Corrected says how each object that others had changed differed.
	Corrected []string
	// Warnings say what may not be watched.
	Warnings []manifest.Problem
}

// Task is what to do in a cluster.
type Task struct {
	Wanted
	// Known is what was noted last; nil for nothing.
	Known *v1alpha1.ClusterAgentStatus
	// Answers says that admission is known to answer there.
	Answers bool
	// Dirty are the objects that others have changed; empty if it is not known.
	Dirty []manifest.ID
}

// Install installs what is wanted, or upgrades to it, and watches it with the applier. If nothing is to be
// done, it corrects what others have changed.
func (i *Installer) Install(ctx context.Context, c *cluster.Cluster, a *apply.Applier, task Task) Acted {
	defer c.Hold()() // even if ctx is canceled, it records its result

	got := i.install(ctx, c, a, task)
	got.Err = advised(got.Err)
	return got
}

func (i *Installer) install(ctx context.Context, c *cluster.Cluster, a *apply.Applier, task Task) Acted {
	w, known, dirty := task.Wanted, task.Known, task.Dirty
	got := Acted{Agent: known.DeepCopy()}
	if got.Err = i.namespace(ctx, c.Client()); got.Err != nil {
		return got
	}
	if got.Reserved, got.Err = reserved(ctx, c.Client(), task.Answers); got.Err != nil {
		return got
	}
	if got.Reserved {
		w.values = helm.MergeValues(w.values, withoutRoles)
	}
	result, err := i.engine.Ensure(ctx, c, i.desired(c.UID(), known, w))
	got.note(result)
	if err != nil {
		got.Err = failed(result, err)
		return got
	}
	got.Wrote = result.Action != release.ActionNone
	got.Agent.Version, got.Agent.Image = w.Version, w.Image
	got.Agent.Inventory = inventory.Encode(result.Objects)
	watched := apply.Watched{IDs: visible(result.Objects), Health: true}
	if got.Wrote {
		watched.Written, watched.Anew = result.Written, watched.IDs
		got.watch(ctx, a, i.Owner(c.UID()), watched)
		return got
	}
	if watched.Anew = dirty; len(dirty) == 0 {
		watched.Anew = watched.IDs
	}
	if got.watch(ctx, a, i.Owner(c.UID()), watched); got.Err != nil {
		return got
	}
	drift, err := i.engine.Correct(ctx, c, i.identity(c.UID(), got.Agent), dirty)
	for _, o := range drift.Objects {
		got.Corrected = append(got.Corrected, o.String())
	}
	if err != nil {
		got.Err = reconcile.Failed(v1alpha1.UpgradeFailedReason, "correct what others have changed: %w", err)
	}
	return got
}

// advised adds to an error what to do about a right that the user of the kubeconfig lacks.
func advised(err error) error {
	if err == nil || !watch.LacksRight(err.Error()) {
		return err
	}
	return fmt.Errorf("%w; `waybill cluster add` with --agent, in the version of the hub, grants the user of the kubeconfig what the chart takes", err)
}

// withoutRoles leave out what gives people rights to write Waybill's kinds.
var withoutRoles = map[string]any{"userRoles": map[string]any{"create": false}}

// reserved reports whether admission has never answered in a cluster, as its configuration says: until it
// does, nothing keeps users who may write Waybill's kinds from using the rights of Waybill.
func reserved(ctx context.Context, c client.Client, answers bool) (bool, error) {
	if answers {
		return false, nil
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := c.Get(ctx, types.NamespacedName{Name: configurationName}, configuration)
	if client.IgnoreNotFound(err) != nil {
		return true, reconcile.Failed(v1alpha1.InstallFailedReason, "ask whether admission answers: %w", err)
	}
	return err != nil || len(configuration.Webhooks) == 0, nil
}

// configurationName is the name of the webhook configuration, which the webhook fills once it answers.
const configurationName = "waybill"

// note records what an action has made of the release.
func (g *Acted) note(result release.Result) {
	switch {
	case result.Release.Name != "":
		if g.Agent == nil {
			g.Agent = &v1alpha1.ClusterAgentStatus{}
		}
		g.Agent.Release = result.Release.DeepCopy()
	case result.Gone:
		g.Agent = &v1alpha1.ClusterAgentStatus{}
	}
}

func (g *Acted) watch(ctx context.Context, a *apply.Applier, owner apply.Owner, watched apply.Watched) {
	warnings, err := a.Watch(ctx, owner, watched)
	if g.Warnings = warnings; err != nil {
		g.Err = reconcile.Failed(v1alpha1.InstallFailedReason, "watch the objects of the release: %w", err)
	}
}

// visible are the objects that are watched: all but Leases, which their holders renew all the time.
func visible(objects []manifest.ID) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(objects), func(id manifest.ID) bool { return id.Kind == "Lease" })
}

// namespace creates the namespace of the release, if there is none.
func (i *Installer) namespace(ctx context.Context, c client.Client) error {
	name := i.options.SystemNamespace
	err := c.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	if err != nil {
		return reconcile.Failed(v1alpha1.InstallFailedReason, "make namespace %s: %w", name, err)
	}
	return nil
}

// Uninstall removes the release, and nothing that is not of it: neither CustomResourceDefinitions nor the
// namespace. known is what was noted last. If there is none of ours, it does nothing.
func (i *Installer) Uninstall(ctx context.Context, c *cluster.Cluster, known *v1alpha1.ClusterAgentStatus) error {
	defer c.Hold()()

	return advised(i.uninstall(ctx, c, known))
}

func (i *Installer) uninstall(ctx context.Context, c *cluster.Cluster, known *v1alpha1.ClusterAgentStatus) error {
	installed, err := inventory.Decode(known.Inventory)
	if err != nil {
		return reconcile.Failed(v1alpha1.InventoryUnreadableReason, "read status.agent.inventory: %w", err)
	}
	if _, err := i.engine.Uninstall(ctx, c, i.identity(c.UID(), known), options, installed); err != nil {
		return reconcile.Failed(v1alpha1.UninstallFailedReason, "uninstall release %s/%s: %w", i.options.SystemNamespace, ReleaseName, err)
	}
	return nil
}

// Describe says what is installed, for a condition.
func Describe(a *v1alpha1.ClusterAgentStatus) string {
	if a == nil || a.Release == nil {
		return "nothing is installed yet"
	}
	return fmt.Sprintf("installed %s: release %s/%s revision %d", a.Version, a.Release.Namespace, a.Release.Name, a.Release.Revision)
}
