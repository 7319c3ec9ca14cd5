package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// K61, K65: what a KubernetesCluster asks for is checked before a commit, in its annotation and in the ConfigMap that
// it names, with line and entry.
func TestValidate_installationsOfClusters(t *testing.T) {
	const manifests = `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: web}
spec:
  versions:
    - version: 1.0.0
      template: {source: {helm: {url: https://charts.example.com, chartName: web, chartVersion: 1.0.0}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: standard, namespace: waybill-system}
data:
  installations.yaml: |
    - metadata: {name: web, namespace: apps}
      spec: {applicationRef: {name: web, version: 2.0.0}}
    - metadata: {name: other, namespace: apps}
      spec: {applicationRef: {name: in-the-hub}}
    - metadata: {name: bad}
      spec: {applicationRef: {name: web, version: 1.0.0}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: KubernetesCluster
metadata:
  name: berlin
  namespace: waybill-system
  annotations:
    apps.waybill.dev/initial-application-installations-request: '[{"metadata": {"name": "web", "namespace": "apps"}, "spec": {"applicationRef": {"name": "web"}}}]'
spec:
  kubeconfigSecretRef: {name: berlin}
  installationsFrom: {name: standard}
`
	got := waybillWith(t, manifests, "validate", "-")
	assert.Equal(t, 1, got.code)
	var lines []string
	for line := range strings.Lines(got.out) {
		lines = append(lines, strings.TrimSpace(line))
	}
	assert.Equal(t, []string{
		`-:11: ConfigMap waybill-system/standard: metadata.labels[apps.waybill.dev/values]: Required value: KubernetesCluster berlin takes installations from it: must be protected`,
		`-:13: ConfigMap waybill-system/standard: data[installations.yaml][2].metadata.namespace: Required value: the namespace of the installation in the cluster`,
		`-:13: ConfigMap waybill-system/standard: data[installations.yaml][0]: Invalid value: "apps/web": ApplicationDefinition "web" has no version "2.0.0"`,
		`-:27: KubernetesCluster waybill-system/berlin: metadata.annotations[apps.waybill.dev/initial-application-installations-request][0]: Invalid value: "apps/web": no version is named, and ApplicationDefinition "web" has no defaultVersion`,
	}, lines)
}
