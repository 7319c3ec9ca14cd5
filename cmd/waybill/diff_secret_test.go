package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// C53: what is wrong with a Secret is reported without its content, which the API server would quote, or
// leave out without a word.
func TestDiff_secretThatIsNoText(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	create(t, clientOf(t, cluster), gitSync(namespace, "team"))
	cases := map[string]struct{ reason, content, value, want string }{
		"data":       {"an unquoted base64 text of digits is a number", "data: {pin: 12345678}", "12345678", "data.pin is not a string"},
		"stringData": {"so is an unquoted password", "stringData: {password: 123456}", "123456", "stringData.password is not a string"},
		"no map":     {"data is a map", "data: hunter2", "hunter2", "data is not a map"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			folder := write(t, map[string]string{
				"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {namespace: " + namespace + ", name: secret}\n" + c.content + "\n",
			})
			for _, args := range [][]string{{"-f", folder}, {"gitsync/team", "-n", namespace, "--path", folder}, {"-f", folder, "-o", "json"}} {
				got := waybill(t, cluster, append([]string{"diff"}, args...)...)
				assert.Equal(t, 1, got.code, got.errOut)
				assert.Contains(t, got.out, "cannot be applied: "+c.want, c.reason)
				assert.NotContains(t, got.out+got.errOut, c.value, c.reason)
				assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused", c.reason)
			}
		})
	}
}
