package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/charts"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/source/chart"
)

// ReleaseName is the name of the release.
const ReleaseName = charts.ChartName

// Options say what is installed. Fields without a comment are required.
type Options struct {
	HubID           string
	SystemNamespace string
	// Charts loads the chart. It needs no network for that.
	Charts *chart.Cache

	// Templates renders the chart. Default: this process does.
	Templates release.Renderer
	// Image of the programs, as REPOSITORY:TAG or REPOSITORY@DIGEST. Default: that of the chart.
	Image string
	// Version of this program, which is then that of the chart. Default, also for what is no semantic
	// version: the one that the chart has in the repository.
	Version string
	// DefaultServiceAccount is the value defaultServiceAccount, which hub and user clusters share.
	DefaultServiceAccount string
}

// Installer installs the release in any cluster. It is safe for concurrent use.
type Installer struct {
	options Options
	chart   *chart.Chart
	// base are the values that come from the hub.
	base   map[string]any
	engine *release.Engine
}

// New loads the chart.
func New(ctx context.Context, o Options) (*Installer, error) {
	loaded, err := o.Charts.FromFS(ctx, chart.Tree{
		Open: func(context.Context) (fs.FS, func(), error) { return charts.Chart(), func() {}, nil },
		Path: charts.ChartName,
	}, chart.Credentials{})
	if err != nil {
		return nil, fmt.Errorf("load the chart of the agent: %w", err)
	}
	if version, err := semver.StrictNewVersion(strings.TrimPrefix(o.Version, "v")); err == nil {
		loaded.Metadata.Version, loaded.Metadata.AppVersion = version.String(), version.String()
		loaded.Digest += "/" + version.String()
	}
	runs, err := parseImage(o.Image)
	if err != nil {
		return nil, err
	}
	base := helm.MergeValues(runs.values(), map[string]any{"defaultServiceAccount": o.DefaultServiceAccount})
	return &Installer{options: o, chart: loaded, base: base, engine: release.NewEngine().RenderedBy(o.Templates)}, nil
}

// fixed are the values that users cannot change: what drives clusters runs in the hub.
var fixed = map[string]any{"roles": map[string]any{"hub": false, "driver": false}}

// Wanted is what is to be installed in one cluster.
type Wanted struct {
	// Version of the chart, and the image that its programs run.
	Version, Image string
	values         map[string]any
}

// Want returns what is to be installed for a spec. An error says which values cannot be used, without
// repeating them.
func (i *Installer) Want(spec *v1alpha1.ClusterAgent) (Wanted, error) {
	own := map[string]any{}
	if raw := spec.Values; raw != nil {
		if err := expansion.JSON(raw.Raw, expansion.MaxValues); err != nil {
			return Wanted{}, reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.agent.values: %w", err)
		}
		if json.Unmarshal(raw.Raw, &own) != nil {
			return Wanted{}, reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.agent.values must map names to values")
		}
	}
	values := helm.MergeValues(i.base, own, fixed)
	return Wanted{
		Version: i.chart.Metadata.Version,
		Image:   imageIn(helm.MergeValues(i.chart.Values, values), i.chart.Metadata.AppVersion),
		values:  values,
	}, nil
}

// Digest identifies what is wanted in a cluster.
func (i *Installer) Digest(uid string, w Wanted) (string, error) {
	return i.desired(uid, nil, w).Digest()
}

// Owner is whose the objects of the release in the cluster with that UID are.
func (i *Installer) Owner(uid string) apply.Owner {
	return apply.Owner{HubID: i.options.HubID, Kind: v1alpha1.KubernetesClusterKind, Name: uid}
}

// identity returns the identity of the release. known is what was noted of it last; nil for nothing.
func (i *Installer) identity(uid string, known *v1alpha1.ClusterAgentStatus) release.Identity {
	owner := i.Owner(uid)
	id := release.Identity{Namespace: i.options.SystemNamespace, Name: ReleaseName, Owner: owner.String(), OwnerHash: owner.Hash()}
	if known != nil {
		id.Known = known.Release
	}
	return id
}

func (i *Installer) desired(uid string, known *v1alpha1.ClusterAgentStatus, w Wanted) release.Desired {
	return release.Desired{
		Identity:    i.identity(uid, known),
		Chart:       i.chart.Chart,
		ChartDigest: i.chart.Digest,
		Values:      w.values,
		Options:     options,
	}
}

// options: a failed upgrade goes back to what worked. The chart that is embedded has no CRDs, which the
// hub keeps up to date itself.
var options = release.Options{Atomic: true, CRDs: v1alpha1.CRDSkip}

// failed says how to react to an error of the engine.
func failed(result release.Result, err error) error {
	reason := v1alpha1.InstallFailedReason
	if result.Action == release.ActionUpgrade || result.Release.Revision > 1 {
		reason = v1alpha1.UpgradeFailedReason
	}
	switch release.ReasonOf(err) {
	case release.ReasonValues:
		return reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.agent.values: %w", err)
	case release.ReasonRender:
		return reconcile.Stalled(v1alpha1.InvalidChartReason, "%w", err)
	case release.ReasonConflict:
		return reconcile.Failed(v1alpha1.ReleaseConflictReason, "%w; or leave out spec.agent, and keep what is there", err)
	case release.ReasonInterrupted:
		if errors.Is(err, context.Canceled) {
			reason = v1alpha1.RenderingInterruptedReason
		}
	}
	return reconcile.Failed(reason, "%w", err)
}
