package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// C38: what else writes kubeconfigs calls them value, people call them kubeconfig.
func TestSecretKeyReference_find(t *testing.T) {
	content := func(s string) []byte { return []byte(s) }
	for name, tc := range map[string]struct {
		reason string
		key    string
		data   map[string][]byte
		found  string
		at     string
	}{
		"value":       {"comes first", "", map[string][]byte{"value": content("a"), "kubeconfig": content("b")}, "a", "value"},
		"kubeconfig":  {"where there is no value", "", map[string][]byte{"kubeconfig": content("b")}, "b", "kubeconfig"},
		"empty value": {"is none", "", map[string][]byte{"value": {}, "kubeconfig": content("b")}, "b", "kubeconfig"},
		"named":       {"and nothing else", "k", map[string][]byte{"value": content("a"), "k": content("c")}, "c", "k"},
		"named, gone": {"and nothing else", "k", map[string][]byte{"value": content("a")}, "", "k"},
		"nothing":     {"the default is what to create", "", nil, "", "value"},
	} {
		t.Run(name, func(t *testing.T) {
			found, key := v1alpha1.SecretKeyReference{Name: "berlin", Key: tc.key}.Find(tc.data)
			assert.Equal(t, tc.found, string(found), tc.reason)
			assert.Equal(t, tc.at, key, tc.reason)
		})
	}
}
