package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// databases is the group of the custom kinds of the cluster user.
const databases = "databases.example.com"

// custom returns an object of a custom kind, which is healthy.
func custom(namespace, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: databases, Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// ownedBy makes an object a dependent of others.
func ownedBy[T client.Object](object T, owners ...client.Object) T {
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		gvk := owner.GetObjectKind().GroupVersionKind()
		refs = append(refs, metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID()})
	}
	object.SetOwnerReferences(refs)
	return object
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
}

// database creates an Application with a component of a custom kind, which owns objects of custom
// and built-in kinds.
func database(t *testing.T, cluster *env.Cluster) (c client.Client, namespace string) {
	t.Helper()
	c, namespace = clientOf(t, cluster), cluster.Namespace(t)
	db := belonging(custom(namespace, "Database", "db"), "shop")
	create(t, c, db, consisting(namespace, "shop", v1alpha1.ApplicationComponent{Group: databases, Kind: "Database"}))
	replica := ownedBy(custom(namespace, "Replica", "db-1"), db)
	failed := ownedBy(custom(namespace, "Replica", "db-2"), db)
	failed.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Stalled", "status": "True", "reason": "x", "message": "no disk"}}}
	create(t, c, replica, failed,
		ownedBy(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}, db),
		ownedBy(configMap(namespace, "db"), db),
		ownedBy(deployment(namespace, "pooler"), db),
		configMap(namespace, "unowned"))
	create(t, c, ownedBy(pod(namespace, "db-1"), replica))
	return c, namespace
}

// A92: what a custom kind owns is of any kind, and so is what that owns, down to the Pods. Every
// kind is listed once.
func TestTree_ownedByCustomKinds(t *testing.T) {
	cluster := user(t)
	_, namespace := database(t, cluster)
	want := []string{
		"Application/shop Current",
		"└─ Database/db Current",
		"   ├─ ConfigMap/db Current",
		"   ├─ Deployment/pooler Current",
		"   │  └─ ReplicaSet/pooler Current",
		"   │     └─ Pod/pooler Current",
		"   ├─ Replica/db-1 Current",
		"   │  └─ Pod/db Current",
		"   ├─ Replica/db-2 Failed",
		"   └─ Secret/db Current",
	}
	require.Eventually(t, func() bool {
		got := waybill(t, cluster, "tree", "application/shop", "-n", namespace)
		return assert.ObjectsAreEqual(want, lines(got.out))
	}, limit, often)
	mark, err := cluster.AuditMark(t.Context())
	require.NoError(t, err)
	got, out := treeOf(t, cluster, namespace, "shop")
	assert.Equal(t, want, got, out)
	requests, err := cluster.Requests(t.Context(), mark, env.Accepted, func(r env.Request) bool {
		return r.Namespace == namespace && strings.HasPrefix(r.UserAgent, "waybill/")
	})
	require.NoError(t, err)
	lists := map[string]int{}
	for _, r := range requests {
		if r.Verb == "list" {
			lists[r.Group+"/"+r.Resource]++
		}
		assert.False(t, r.Verb == "get" && r.Resource == "secrets", "of Secrets, the metadata is enough")
	}
	assert.NotContains(t, lists, "/events")
	for resource, n := range lists {
		if resource == databases+"/databases" {
			assert.LessOrEqual(t, n, 2, "the metadata of all of them, and the components in full")
			continue
		}
		assert.Equal(t, 1, n, resource)
	}
}

// A40: kinds that may not be listed are reported in one line, and what may be listed is shown.
func TestTree_ownedByCustomKindsWithFewRights(t *testing.T) {
	cluster := user(t)
	_, namespace := database(t, cluster)
	kubeconfig, _ := userWith(t, cluster, namespace,
		right(v1alpha1.Group, []string{"applications"}, "get", "list"),
		right(databases, []string{"databases", "replicas"}, "get", "list"),
		right("", []string{"configmaps"}, "get", "list"),
	)
	got := waybillWith(t, "", "tree", "application/shop", "-n", namespace, "--kubeconfig", kubeconfig)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"Application/shop Current",
		"└─ Database/db Current",
		"   ├─ ConfigMap/db Current",
		"   ├─ Replica/db-1 Current",
		"   └─ Replica/db-2 Failed",
	}, lines(got.out), got.out)
	assert.Regexp(t, `^warning: what objects own is not complete: you may not list .*, .* and \d+ other kinds in namespace `+namespace+` of cluster \S+\n$`, got.errOut)
}

// Few objects of a kind are read one by one, many by one list.
func TestTree_manyOwnedByCustomKinds(t *testing.T) {
	cluster := user(t)
	c, namespace := database(t, cluster)
	db := custom(namespace, "Database", "db")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(db), db))
	for i := range 40 {
		create(t, c, ownedBy(custom(namespace, "Replica", fmt.Sprintf("many-%d", i)), db))
	}
	mark, err := cluster.AuditMark(t.Context())
	require.NoError(t, err)
	_, out := treeOf(t, cluster, namespace, "shop")
	assert.Equal(t, 42, strings.Count(out, "Replica/"), out)
	requests, err := cluster.Requests(t.Context(), mark, env.Accepted, func(r env.Request) bool {
		return r.Namespace == namespace && r.Resource == "replicas" && strings.HasPrefix(r.UserAgent, "waybill/")
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(requests), 10, "the metadata, some objects, and all objects: %v", requests)
}

// An object that is a component and is owned by another is shown in full once, and always at the
// same place; a cycle of owners ends.
func TestTree_ownedByComponents(t *testing.T) {
	cluster := user(t)
	c, namespace := database(t, cluster)
	app := &v1alpha1.Application{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop"}, app))
	app.Spec.Components = append(app.Spec.Components, v1alpha1.ApplicationComponent{Group: databases, Kind: "Replica", Name: "db-1"})
	require.NoError(t, c.Update(t.Context(), app))
	replica := custom(namespace, "Replica", "db-1")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(replica), replica))
	require.NoError(t, c.Update(t.Context(), belonging(replica, "shop")))
	db := custom(namespace, "Database", "db")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(db), db))
	require.NoError(t, c.Update(t.Context(), ownedBy(db, replica)))

	for range 5 { // the order in which things are read must not show
		_, out := treeOf(t, cluster, namespace, "shop")
		require.Regexp(t, `(?m)^│  ├─ Replica/db-1 +\S+ +Current$`, out)
		require.Regexp(t, `(?m)^│  │  ├─ Database/db .*what it is made of is shown at another place of this tree$`, out)
		require.Regexp(t, `(?m)^│  │  └─ Pod/db-1 `, out)
		require.Regexp(t, `(?m)^└─ Replica/db-1 .*what it is made of is shown at another place of this tree$`, out)
		require.Equal(t, 1, strings.Count(out, "Pod/db-1"), out)
	}
}

// Of a CronJob the metadata is enough, and its Jobs and their Pods are shown nevertheless.
func TestTree_ownedByCronJob(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "c"}},
	}}
	suspended := true
	cron := belonging(&batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "backup"},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 * * *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}},
	}, "shop")
	create(t, c, cron, consisting(namespace, "shop", v1alpha1.ApplicationComponent{Group: "batch", Kind: "CronJob"}))
	cron.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("CronJob"))
	create(t, c, ownedBy(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "backup-1"}, Spec: batchv1.JobSpec{Template: template}}, cron))
	require.Eventually(t, func() bool {
		got := waybill(t, cluster, "tree", "application/shop", "-n", namespace)
		return strings.Contains(got.out, "   └─ Job/backup-1") && strings.Contains(got.out, "      └─ Pod/backup-1-")
	}, limit, often)
}
