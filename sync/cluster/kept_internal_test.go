package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"waybill.dev/waybill/api/v1alpha1"
)

const installationPath = "/apis/apps.waybill.dev/v1alpha1/applicationinstallations"

// events sends so many events of objects that differ in their names, and that these are all.
func events(kind string, n int, annotation string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		for i := range n {
			_, err := fmt.Fprintf(w, `{"type":"MODIFIED","object":{%s,"metadata":{"name":"a%d","namespace":"a","resourceVersion":"2","annotations":{"a":"%s"}}}}`+"\n",
				kind, i, annotation)
			if err != nil {
				return
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{%s,"metadata":{"resourceVersion":"2","annotations":{"%s":"true"}}}}`+"\n",
			kind, metav1.InitialEventsAnnotationKey)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

const (
	installationKind = `"apiVersion":"apps.waybill.dev/v1alpha1","kind":"ApplicationInstallation"`
	metadataKind     = `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"`
)

// keepsLittle are limits that few objects exceed.
func keepsLittle() limits {
	l := anEighth()
	l.kept /= 8
	return l
}

// A cluster has as many installations as fit.
func TestKept_boundsInstallations(t *testing.T) {
	cases := map[string]struct {
		count int
		text  string
		want  string
	}{
		"AsManyAsFit": {maxInstallations, "", ""},
		"OneMore":     {maxInstallations + 1, "", "the number of ApplicationInstallations exceeds the limit of 10000"},
		"TooLarge":    {25, strings.Repeat("a", 128<<10), "the size of its objects, with ApplicationInstallations, exceeds the limit of 2 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := events(installationKind, tc.count, tc.text)
			l := keepsLittle()
			if tc.text == "" {
				l.kept = defaultLimits().kept
			}
			c, got := engagedWithin(t, newHostile(t, map[string]http.HandlerFunc{installationPath: answer}), l)
			informer, err := c.Cache().GetInformer(t.Context(), &v1alpha1.ApplicationInstallation{}, ctrlcache.BlockUntilSynced(false))
			require.NoError(t, err)
			indexer := informer.(cache.SharedIndexInformer).GetIndexer()
			require.Eventually(t, func() bool {
				return got() != nil || tc.want == "" && len(indexer.ListKeys()) == tc.count
			}, time.Minute, 5*time.Millisecond)
			if tc.want == "" {
				assert.NoError(t, got())
				return
			}
			assert.ErrorContains(t, got(), tc.want)
			assert.LessOrEqual(t, len(indexer.ListKeys()), maxInstallations)
		})
	}
}

// What several watches keep counts together, and no more once they are gone.
func TestKept_countsTogether(t *testing.T) {
	text := strings.Repeat("a", 128<<10)
	answer := events(metadataKind, 12, text)
	c, got := engagedWithin(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: answer, "/api/v1/secrets": answer}), keepsLittle())
	keepSecretsAndConfigMaps(t, c, got)
	require.Eventually(t, func() bool { return got() != nil }, time.Minute, 5*time.Millisecond)
	assert.ErrorContains(t, got(), "the size of its objects, with secrets, exceeds the limit of 2 MiB")
	require.Eventually(t, func() bool {
		runtime.GC()
		c.ledger.mu.Lock()
		defer c.ledger.mu.Unlock()
		return c.ledger.sum == 0
	}, time.Minute, 10*time.Millisecond)
}

// keepSecretsAndConfigMaps keeps both for as long as it takes, the first of which fit.
func keepSecretsAndConfigMaps(t *testing.T, c *Cluster, got func() error) {
	t.Helper()
	first := c.Metadata().Resource(configMaps)
	w, err := first.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for range 12 {
		<-w.ResultChan()
	}
	require.NoError(t, got())
	w.Stop()

	second := c.Dynamic().Resource(configMaps.GroupVersion().WithResource("secrets"))
	w, err = second.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for range w.ResultChan() {
		continue
	}
	runtime.KeepAlive(first)
}

func TestAccount(t *testing.T) {
	object := func(name string, size int) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"a": strings.Repeat("a", size)},
		}}
	}
	var over error
	kept := newKept(1 << 40)
	l := newIntake(nil, "", Options{limits: defaultLimits(), underWay: newUnderWay(), kept: kept}, func(err error) { over = err }).ledger(nil)
	a := l.account("things", 2)
	a.watched(true)
	require.NoError(t, a.event(watch.Event{Type: watch.Added, Object: object("a", 1000)}))
	one := l.sum
	require.NoError(t, a.event(watch.Event{Type: watch.Modified, Object: object("a", 1000)}))
	assert.Equal(t, one, l.sum, "it is the same object")
	require.NoError(t, a.event(watch.Event{Type: watch.Added, Object: object("b", 1000)}))
	require.NoError(t, a.event(watch.Event{Type: watch.Deleted, Object: object("a", 1000)}))
	require.NoError(t, a.event(watch.Event{Type: watch.Bookmark, Object: object("", 0)}))
	assert.Equal(t, one, l.sum, "one is left")
	page := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*object("c", 0), *object("d", 0)}}
	require.NoError(t, a.list(page, true), "a list replaces everything")
	require.NoError(t, over)
	require.EqualError(t, a.list(&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*object("e", 0)}}, false),
		"the number of things exceeds the limit of 2", "another page does not")
	require.Error(t, over)
	assert.Equal(t, l.sum, kept.sum)
	a.clear()
	assert.Zero(t, l.sum)
	assert.Zero(t, kept.sum)
}

// Nothing that a server sends is kept without being weighed.
func TestWeightOf_followsTheSize(t *testing.T) {
	const size = 100_000
	text := strings.Repeat("a", size)
	installation := &v1alpha1.ApplicationInstallation{}
	require.NoError(t, json.Unmarshal([]byte(`{"spec":{"namespace":{"name":"`+text+`"}}}`), installation))
	unlabelled := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: text}}}}
	catalog := &v1alpha1.ApplicationDefinition{Spec: v1alpha1.ApplicationDefinitionSpec{Description: text}}
	used := &v1alpha1.ApplicationDefinition{Status: v1alpha1.ApplicationDefinitionStatus{
		UsedBy: []v1alpha1.VersionUsage{{Version: text}}, Unprovided: []v1alpha1.UnprovidedCluster{{Problem: text}},
	}}
	kept, err := onlyUsage(used.DeepCopy())
	require.NoError(t, err)
	assert.Equal(t, used, kept)
	kept, err = onlyUsage(catalog.DeepCopy())
	require.NoError(t, err)
	assert.Equal(t, &v1alpha1.ApplicationDefinition{}, kept)
	cases := map[string]struct {
		got  int64
		want int
	}{
		"Catalog":   {weightOf(catalog), 0},
		"Used":      {weightOf(used), 2 * size},
		"Typed":     {weightOf(installation), size},
		"Labels":    {weightOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{text: ""}}}), size},
		"Finalizer": {weightOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{text}}}), size},
		"Name":      {weightOf(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": text}}}), size},
		"Dropped":   {weightOf(unlabelled), 0},
	}
	for name, tc := range cases {
		assert.InDelta(t, tc.want, tc.got, 4096, name)
	}
}
