package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What files hold cannot steer the terminal of who looks at them, nor pass for something that the program says.
func TestOutput_escapesTerminals(t *testing.T) {
	const steer = "\x1b[2J"
	named := "apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata: {name: \"a\\e[2J\", namespace: a}\nspec: {url: \"http://a\"}\n"
	folder := write(t, map[string]string{
		steer + "\nkind: Forged.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\e[2J\\nb\"}\n",
		steer + "broken.yaml":           "{",
		"chart" + steer + "/Chart.yaml": "name: web\nversion: 1.0.0\n",
	})
	cases := map[string]struct {
		reason string
		in     string
		args   []string
	}{
		"validate":    {"findings name objects", named, []string{"validate", "-"}},
		"a folder":    {"and files, and charts that are left out", "", []string{"validate", folder}},
		"render":      {"comments name files", "", []string{"render", "--path", folder}},
		"names":       {"names are printed as they are", "", []string{"render", "--path", folder, "-o", "name"}},
		"an error":    {"errors quote arguments and files", "", []string{"validate", folder + "/" + steer}},
		"an old kind": {"", "apiVersion: app.k8s.io/v1beta1\nkind: Application\nmetadata: {name: \"a\\e[2J\"}\nspec: {addOwnerRef: 7}\n", []string{"import", "-f", "-"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybillWith(t, c.in, append(c.args, "--kubeconfig", "/does/not/exist")...)
			assert.NotContains(t, got.out+got.errOut, "\x1b", c.reason)
			assert.Contains(t, got.out+got.errOut, "[2J", "it is told: %s", c.reason)
			assert.NotContains(t, got.out, "\nkind: Forged", c.reason)
			assert.NotContains(t, got.out, "\nb\n", c.reason)
		})
	}
}
