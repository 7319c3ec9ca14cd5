package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// C57: what a cluster serves is asked of the cluster.
func TestServed(t *testing.T) {
	c := newLocal(t)
	for reason, tc := range map[string]struct {
		version schema.GroupVersion
		kind    string
		want    bool
	}{
		"of the core":            {schema.GroupVersion{Version: "v1"}, "ConfigMap", true},
		"of a group":             {schema.GroupVersion{Group: "apps", Version: "v1"}, "Deployment", true},
		"of a definition":        {schema.GroupVersion{Group: "apps.waybill.dev", Version: "v1alpha1"}, "KubernetesApplication", true},
		"subresources are none":  {schema.GroupVersion{Group: "apps", Version: "v1"}, "Scale", false},
		"no kind of the version": {schema.GroupVersion{Group: "apps", Version: "v1"}, "Widget", false},
		"no such version":        {schema.GroupVersion{Group: "apps", Version: "v9"}, "Deployment", false},
		"no such group":          {schema.GroupVersion{Group: "example.com", Version: "v1"}, "Widget", false},
	} {
		served, err := c.Served(t.Context(), tc.version)
		require.NoError(t, err, reason)
		assert.Equal(t, tc.want, served.Has(tc.kind), reason)
	}
}
