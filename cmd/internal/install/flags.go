package install

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values"
)

// given are the values that the command line gives.
type given struct {
	files []string
	sets  []string
}

func (g *given) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&g.files, "values", "f", nil, "File with values; later ones win")
	cmd.Flags().StringArrayVar(&g.sets, "set", nil, "Value as NAME=VALUE, as for helm: it wins over files")
}

func (g *given) any() bool { return len(g.files)+len(g.sets) > 0 }

// over returns the values over those below them.
func (g *given) over(below map[string]any) (map[string]any, error) {
	layers, err := installation.ReadValues(g.files)
	if err != nil {
		return nil, err
	}
	merged := helm.MergeValues(append([]map[string]any{below}, layers...)...)
	for _, expression := range g.sets {
		if err := helm.Set(merged, expression); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
	}
	return merged, nil
}

// OwnValues returns the values that an installation sets itself.
func OwnValues(inst *v1alpha1.ApplicationInstallation) (map[string]any, error) {
	if inst.Spec.Values == nil {
		own, err := values.Parse([]byte(inst.Spec.ValuesBlock))
		if err != nil {
			return nil, fmt.Errorf("spec.valuesBlock %w", err)
		}
		return own, nil
	}
	own, err := values.Parse(inst.Spec.Values.Raw)
	if err != nil {
		return nil, fmt.Errorf("spec.values %w", err)
	}
	return own, nil
}

// SetValues has an installation set these values, and no others.
func SetValues(inst *v1alpha1.ApplicationInstallation, own map[string]any) error {
	inst.Spec.ValuesBlock, inst.Spec.Values = "", nil
	if len(own) == 0 {
		return nil
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("write values: %w", err)
	}
	inst.Spec.Values = &apiextensionsv1.JSON{Raw: raw}
	return nil
}

// waiting are the flags that say how long a command follows what it has asked for.
type waiting struct {
	wait    bool
	noWait  bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", true, "Follow it until it is ready, or cannot be")
	cmd.Flags().BoolVar(&w.noWait, "no-wait", false, "Return once it is in progress, as with --wait=false")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "How long to follow it at most; it goes on after that")
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
}

func (w *waiting) waits() bool { return w.wait && !w.noWait }
