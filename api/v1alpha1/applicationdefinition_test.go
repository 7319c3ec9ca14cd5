package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

func TestGetVersion_findsTheExactNameFirst(t *testing.T) {
	for _, c := range []struct {
		reason, asked, want string
		offered             []string
	}{
		{"as it is called", "1.0.0", "1.0.0", []string{"1.0.0"}},
		{"with a v", "v1.0.0", "1.0.0", []string{"2.0.0", "1.0.0"}},
		{"without one", "1.0.0", "v1.0.0", []string{"v1.0.0"}},
		{"both are there, in either order", "v1.0.0", "v1.0.0", []string{"1.0.0", "v1.0.0"}},
		{"both are there, in either order", "1.0.0", "1.0.0", []string{"v1.0.0", "1.0.0"}},
		{"a v in front of a word is part of it", "nightly", "", []string{"vnightly"}},
		{"only one v", "vv1", "", []string{"v1"}},
		{"another version", "1.0", "", []string{"1.0.0"}},
		{"none", "", "", []string{"v"}},
	} {
		d := &v1alpha1.ApplicationDefinition{}
		for _, version := range c.offered {
			d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: version})
		}
		got := d.GetVersion(c.asked)
		if c.want == "" {
			assert.Nil(t, got, "%s: %q of %q", c.reason, c.asked, c.offered)
		} else if assert.NotNil(t, got, "%s: %q of %q", c.reason, c.asked, c.offered) {
			assert.Equal(t, c.want, got.Version, c.reason)
		}
	}
}
