package restore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/data/restore"
)

// S98, C18: what the API server and controllers have set is not restored.
func TestClean(t *testing.T) {
	cases := map[string]struct {
		reason     string
		have, want string
	}{
		"Metadata": {
			reason: "identity and history belong to the object that was captured",
			have: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, generateName: a-, uid: u, resourceVersion: "1", generation: 2,
				creationTimestamp: "2026-01-01T00:00:00Z", finalizers: [x/y], ownerReferences: [{kind: A, name: b, uid: c, apiVersion: v1}], managedFields: [],
				labels: {app: a}, annotations: {note: x, kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {k: v}, status: {x: y}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, labels: {app: a}, annotations: {note: x}}, data: {k: v}}`,
		},
		"Service": {
			reason: "addresses and ports were allocated; policies were chosen",
			have: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 30001,
				ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30000}]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}`,
		},
		"HeadlessService": {
			reason: "None was chosen",
			have:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"Claim": {
			reason: "it is bound anew; the old way to name a StorageClass was chosen",
			have: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: "yes",
				volume.kubernetes.io/selected-node: node, volume.beta.kubernetes.io/storage-provisioner: p, volume.beta.kubernetes.io/storage-class: fast}},
				spec: {volumeName: pv, dataSource: {kind: VolumeSnapshot, name: s}, dataSourceRef: {kind: VolumeSnapshot, name: s}, accessModes: [ReadWriteOnce]}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.beta.kubernetes.io/storage-class: fast}},
				spec: {accessModes: [ReadWriteOnce]}}`,
		},
		"Job": {
			reason: "its selector is made from its UID",
			have: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {app: a, controller-uid: u, job-name: a}}, spec: {selector: {matchLabels: {controller-uid: u}},
				template: {metadata: {labels: {app: a, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: a}}, spec: {}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {app: a}}, spec: {template: {metadata: {labels: {app: a}}, spec: {}}}}`,
		},
		"JobWithSelector": {
			reason: "it was chosen",
			have:   `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {app: a}}}}`,
			want:   `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {app: a}}}}`,
		},
		"Deployment": {
			reason: "the revision counts the ReplicaSets of the original",
			have:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "3"}}, spec: {replicas: 2}}`,
			want:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}`,
		},
		"StatefulSet": {
			reason: "templates of claims are kept without what is set in claims",
			have: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: data, creationTimestamp: null},
				spec: {storageClassName: fast}, status: {phase: Pending}}]}}`,
			want: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]}}`,
		},
		"ServiceAccount": {
			reason: "its tokens are made anew",
			have:   `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x}], imagePullSecrets: [{name: pull}]}`,
			want:   `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: pull}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := object(t, tc.have)
			before := have.DeepCopy()
			assert.Equal(t, object(t, tc.want).Object, restore.Clean(have).Object, tc.reason)
			assert.Equal(t, before, have, "the definition itself stays as it is")
		})
	}
}

// S101: a clone belongs to no controller that delivers the original.
func TestDetach(t *testing.T) {
	obj := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
		labels: {app: a, app.kubernetes.io/part-of: shop, apps.waybill.dev/owner-hash: x, argocd.argoproj.io/instance: shop},
		annotations: {note: x, apps.waybill.dev/owner: hub/GitSync/n/a, apps.waybill.dev/held-by: n/r, kubernetes.io/application: shop,
			apps.waybill.dev/injected: shop, meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: ns}}}`)
	restore.Detach(obj)
	assert.Equal(t, map[string]string{"app": "a"}, obj.GetLabels())
	assert.Equal(t, map[string]string{"note": "x"}, obj.GetAnnotations())

	chosen := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/part-of: other}, annotations: {kubernetes.io/application: shop}}}`)
	before := chosen.DeepCopy()
	restore.Detach(chosen)
	assert.Equal(t, before, chosen, "what Waybill has not injected was chosen")

	moved := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubernetes.io/application: other, apps.waybill.dev/injected: shop}}}`)
	restore.Detach(moved)
	assert.Equal(t, map[string]string{"kubernetes.io/application": "other"}, moved.GetAnnotations(), "so was what has been changed since")
}

func TestGenerated(t *testing.T) {
	owner := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: u1}}`)
	owned := `metadata: {name: a, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1, controller: true}]}`
	cases := map[string]struct {
		object, want string
	}{
		"Plain":             {`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque}`, ""},
		"Token":             {`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}`, "a token is made for each ServiceAccount"},
		"Release":           {`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: helm.sh/release.v1}`, "Helm keeps its releases in it"},
		"DefaultAccount":    {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`, "every namespace has one"},
		"CA":                {`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}`, "every namespace has one"},
		"Owned":             {`{apiVersion: apps/v1, kind: ReplicaSet, ` + owned + `}`, "its owner, Deployment web, creates it"},
		"OwnedClaim":        {`{apiVersion: v1, kind: PersistentVolumeClaim, ` + owned + `}`, ""},
		"OwnedByOutsider":   {`{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{apiVersion: x/v1, kind: Operator, name: o, uid: u2, controller: true}]}}`, ""},
		"OwnedByOurs":       {`{apiVersion: v1, kind: Service, metadata: {name: a, ownerReferences: [{apiVersion: apps.waybill.dev/v1alpha1, kind: GitSync, name: o, uid: u1, controller: true}]}}`, "its owner, GitSync o, creates it"},
		"OwnedByComponents": {`{apiVersion: v1, kind: Service, metadata: {name: a, ownerReferences: [{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, name: o, uid: u1, controller: true}]}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, restore.Generated(object(t, tc.object), []*unstructured.Unstructured{owner}))
		})
	}
}

// object reads an object from YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}
