package contents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const mongo = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: mongo}, spec: {
  type: mongo, selector: {matchLabels: {app: mongo}},
  components: [{group: apps, kind: StatefulSet}, {kind: Service}, {kind: ConfigMap, name: none}, {group: example.org, kind: Nothing}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: mongo, labels: {app: mongo}}, spec: {clusterIP: None, selector: {app: mongo}, ports: [{port: 27017}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {password: secret}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, labels: {app: mongo}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: mongo, labels: {app: mongo}}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  serviceName: mongo
  selector: {matchLabels: {app: mongo}}
  template:
    metadata: {labels: {app: mongo}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: mongo, image: mongo, volumeMounts: [{name: data, mountPath: /data}],
           env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: password, key: password}}}]}
  volumeClaimTemplates:
    - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
`

// other is an application of the same namespace, that has nothing to do with the rest.
const other = `
{apiVersion: v1, kind: Secret, metadata: {name: of-other}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-mongo-extra}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: main, envFrom: [{secretRef: {name: of-other}}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data-mongo-extra}}]
`

// S1, S85: components, and what their Pods use, as long as there are Pods and when there are none. No
// controller has written a status or annotations.
func TestFind_statefulSet(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(mongo)
	set := applied[len(applied)-1]
	w.awaitPods(2)
	w.apply(other)
	w.awaitPods(3)

	found := w.find("mongo")
	all := []string{
		`Secret password: environment of StatefulSet "mongo"`,
		`Service mongo: component of Application "mongo"`,
		`StatefulSet mongo: component of Application "mongo"`,
	}
	template := `volumeClaimTemplate "data" of StatefulSet "mongo"`
	assert.Equal(t, all, objects(found))
	assert.Equal(t, []string{"data-mongo-0: " + template, "data-mongo-1: " + template}, claims(found))
	assert.Equal(t, []string{"mongo-0", "mongo-1"}, pods(found))
	assert.Equal(t, "mongo", found.Application.GetName())
	assert.Equal(t, []string{
		`!ConfigMap none: component of Application "mongo": does not exist, or belongs to another one`,
		`!Nothing : kind of components of Application "mongo": the cluster does not serve it`,
	}, left(found))
	for _, c := range found.Claims {
		assert.NotEmpty(t, c.Volume)
		assert.NotEmpty(t, c.StorageClass)
		assert.Empty(t, c.Driver, "that volume is no CSI driver's")
		assert.Empty(t, c.GetManagedFields())
	}

	require.NoError(t, w.Client.Delete(t.Context(), podNamed(w, "other")))
	w.scale(set, 0)
	found = w.find("mongo")
	assert.Equal(t, all, objects(found))
	assert.Equal(t, []string{"data-mongo-0: " + template, "data-mongo-1: " + template}, claims(found))
	assert.Empty(t, found.Pods)

	w.scale(set, 1)
	assert.Equal(t, []string{"data-mongo-0: " + template}, claims(w.find("mongo")), "of a replica that was given up")
}

func podNamed(w *world, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	require.True(w.T, w.Exists(pod, name))
	return pod
}

const web = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: web}, spec: {
  type: web, selector: {matchLabels: {app: web}},
  components: [{group: apps, kind: Deployment}, {group: apps, kind: ReplicaSet}, {kind: Pod}, {kind: Secret}, {kind: Service},
    {kind: Endpoints}, {group: discovery.k8s.io, kind: EndpointSlice}, {group: coordination.k8s.io, kind: Lease}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, labels: {app: web}}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.web.v1, labels: {app: web}}, type: helm.sh/release.v1}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}}
---
{apiVersion: v1, kind: Secret, metadata: {name: account-pull}}
---
{apiVersion: v1, kind: Secret, metadata: {name: projected}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: of-init}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, imagePullSecrets: [{name: account-pull}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: web}}, type: kubernetes.io/service-account-token}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: files}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: unbound}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web-reads}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: web}, {kind: ServiceAccount, namespace: NAMESPACE, name: web}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web-views}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
  subjects: [{kind: ServiceAccount, namespace: NAMESPACE, name: web}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: another-web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: unbound},
  subjects: [{kind: ServiceAccount, namespace: elsewhere, name: web}, {kind: User, apiGroup: rbac.authorization.k8s.io, name: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: tool, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: main, volumeMounts: [{name: scratch, mountPath: /scratch}]}]
  volumes:
    - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      terminationGracePeriodSeconds: 0
      imagePullSecrets: [{name: pull}, {name: no-pull}]
      initContainers: [{name: init, image: init, envFrom: [{configMapRef: {name: of-init}}, {configMapRef: {name: may-be, optional: true}}]}]
      containers:
        - {name: web, image: web, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}
      volumes:
        - {name: files, persistentVolumeClaim: {claimName: files}}
        - {name: gone, persistentVolumeClaim: {claimName: gone}}
        - {name: token, secret: {secretName: token}}
        - {name: lost, configMap: {name: lost}}
        - {name: all, projected: {sources: [{secret: {name: projected}}, {configMap: {name: kube-root-ca.crt}}]}}
`

// S1, S85: configuration, accounts and rights follow Pods and their templates; what controllers make,
// and what is valid nowhere else, is left out with a reason.
func TestFind_deployment(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(inNamespace(web, w.Namespace))
	require.True(t, w.Eventually(func() bool { // the other one waits for a claim that does not exist
		return w.Exists(&corev1.Pod{}, "tool") && podNamed(w, "tool").Status.Phase == corev1.PodRunning
	}))
	w.AwaitThere(&corev1.Endpoints{}, "web") //nolint:staticcheck // charts still have them
	want := []string{
		`ConfigMap of-init: environment of Deployment "web"`,
		`ConfigMap settings: environment of Deployment "web"`,
		`Pod tool: component of Application "web"`,
		`Secret account-pull: imagePullSecrets of ServiceAccount "web"`,
		`Secret projected: volume "all" of Deployment "web"`,
		`Secret pull: imagePullSecrets of Deployment "web"`,
		`Service web: component of Application "web"`,
		`ServiceAccount web: serviceAccountName of Deployment "web"`,
		`Deployment web: component of Application "web"`,
		`Role reader: role of RoleBinding "web-reads"`,
		`RoleBinding web-reads: gives rights to ServiceAccount "web"`,
		`RoleBinding web-views: gives rights to ServiceAccount "web"`,
	}
	found := w.find("web")
	assert.Equal(t, want, objects(found))
	assert.Len(t, found.Claims, 1)
	require.Len(t, found.Pods, 2)
	assert.Equal(t, "tool", found.Pods[0].Name, "the other one is about to run")
	tool := found.Objects[2]
	assert.NotContains(t, tool.Object["spec"], "nodeName")
	for _, part := range []string{
		`PersistentVolumeClaim tool-scratch: ephemeral volume "scratch" of Pod "tool": it is deleted with the Pod`,
		`Secret token: it is the token of a ServiceAccount, which is valid for that one only`,
		`Secret sh.helm.release.v1.web.v1: it is the history of a Helm release, which Helm writes`,
		`Endpoints web: it is made from a Service`,
		`!ConfigMap lost: volume "lost" of Deployment "web": does not exist`,
		`!PersistentVolumeClaim gone: volume "gone" of Deployment "web": does not exist`,
	} {
		assert.Contains(t, left(found), part)
	}
	for _, l := range found.Left {
		assert.NotContains(t, []string{"no-pull", "may-be", "kube-root-ca.crt"}, l.Name, "it is optional, or everywhere")
	}

	patch(w, applied[len(applied)-1], `{"spec":{"replicas":0,"template":{"spec":{"containers":[{"name":"web","image":"web"}]}}}}`)
	require.NoError(t, w.Client.Delete(t.Context(), podNamed(w, "tool")))
	w.awaitPods(0)
	found = w.find("web")
	assert.Equal(t, append(want[:1:1], want[3:]...), objects(found), "and what only an earlier ReplicaSet uses is no part")
	assert.Equal(t, []string{`files: volume "files" of Deployment "web"`}, claims(found))
}

const job = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: job}, spec: {
  type: job, selector: {matchLabels: {app: job}}, components: [{group: batch, kind: Job}, {kind: ConfigMap, name: unlabelled}, {kind: ConfigMap, name: odd}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: unlabelled}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: odd}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: result}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: done, labels: {app: job}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: main, envFrom: [{configMapRef: {name: absent, optional: true}}]}],
  volumes: [{name: result, persistentVolumeClaim: {claimName: result}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: suspended, labels: {app: job}}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: main, envFrom: [{configMapRef: {name: unlabelled}}, {configMapRef: {name: absent}}]}]}}}
`

// S85: what a Job has done is in its volumes, and it is not run again. An object that is no component
// after all may be used.
func TestFind_job(t *testing.T) {
	w := newWorld(t)
	w.apply(job)
	done := &batchv1.Job{}
	require.True(t, w.Eventually(func() bool { return w.Exists(done, "done") && done.Status.CompletionTime != nil }))
	found := w.find("job")
	assert.Equal(t, []string{`ConfigMap unlabelled: environment of Job "suspended"`, `Job suspended: component of Application "job"`}, objects(found))
	assert.Equal(t, []string{`result: volume "result" of Job "done"`}, claims(found))
	assert.Empty(t, found.Pods, "it has finished")
	assert.Equal(t, []string{
		`!ConfigMap absent: environment of Job "suspended": does not exist`,
		`!ConfigMap odd: component of Application "job": does not exist, or belongs to another one`,
		"Job done: it has finished",
	}, left(found))
}

const database = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: db}, spec: {
  type: db, selector: {matchLabels: {app: db}}, components: [{group: example.com, kind: Database}]}}
---
{apiVersion: example.com/v1, kind: Database, metadata: {name: db, labels: {app: db}}}
---
{apiVersion: example.com/v1, kind: Database, metadata: {name: other}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {set: db}}
  template: {metadata: {labels: {set: db}}, spec: {containers: [{name: db, image: db, envFrom: [{secretRef: {name: made}}, {secretRef: {name: given}}]}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]
---
{apiVersion: v1, kind: Secret, metadata: {name: made}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: wal}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: direct}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: db, image: db, envFrom: [{configMapRef: {name: of-pod}}]}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: given}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: of-pod}}
`

// S85: an operator's Pods and claims belong to the application whose component its resource is, and
// what it makes is made again.
func TestFind_customResource(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(database)
	w.own(applied[1], applied[3], applied[4], applied[5], applied[7])
	w.awaitPods(1)
	w.apply(other)
	w.awaitPods(2)
	w.own(applied[2], w.apply(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: of-another}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`)...)

	found := w.find("db")
	assert.Equal(t, []string{
		`ConfigMap of-pod: environment of Pod "direct"`,
		`Secret given: environment of StatefulSet "db"`,
		`Database db: component of Application "db"`,
	}, objects(found))
	assert.Equal(t, []string{`data-db-0: volumeClaimTemplate "data" of StatefulSet "db"`, `wal: Database "db" made it`}, claims(found))
	assert.Equal(t, []string{"direct"}, pods(found))
	assert.Equal(t, []string{`Secret made: Database "db" makes it`}, left(found))
}
