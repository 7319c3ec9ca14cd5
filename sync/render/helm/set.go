package helm

import (
	"fmt"

	"helm.sh/helm/v3/pkg/strvals"
)

// Set sets values as `helm install --set` does: `a.b=c,list[0]=d`. A value of null stays in the values.
func Set(values map[string]any, expression string) error {
	if err := strvals.ParseInto(expression, values); err != nil {
		return fmt.Errorf("%q cannot be read: write NAME=VALUE, as for helm --set: %w", expression, err)
	}
	return nil
}
