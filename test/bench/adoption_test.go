package bench

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/observe"
)

// application1000Adopt measures how long it takes from the first of 1,000 new Applications until
// every status is right, if their 10,000 components exist already and have no owner.
func application1000Adopt(b *testing.B, s *results) {
	c := openAppCluster(b)
	bare := c.newBareOwner(b)
	var took, least, writes samples
	peak := 0.0
	for b.Loop() {
		bare.reset(b)
		least.add(bare.adopt(b))
		bare.reset(b)

		process := startAgent(b, c.hub)
		before := c.mark(b)
		began := time.Now()
		c.createApplications(b)
		c.await(b, applicationCount, allThere)
		took.since(began)
		writes.add(c.requests(b, before).count(of(applications), statusWrite) / applicationCount)
		peak = max(peak, process.peak(b))
		require.NoError(b, process.Kill())
	}
	s.atMost("", took.median()/least.median(), "x floor", 3)
	s.inform("time", took.median(), "s")
	s.inform("floor", least.median(), "s")
	s.inform("status-writes", writes.median(), "each")
	s.atMost("rss", peak, "MiB", maxRSS)
}

// bareOwner is a bare program that knows whose each object is. It creates the Applications as the
// row itself does, writes to each object what Waybill does, and one minimal status each.
type bareOwner struct {
	*appCluster
	*floor
	objects  []patch // those of the first Application, of the second, and so on
	statuses []patch
}

func (c *appCluster) newBareOwner(b *testing.B) *bareOwner {
	b.Helper()
	bare := &bareOwner{appCluster: c, floor: newFloor(b, c.RESTConfig(), connections), objects: prepare(b, allComponents())}
	for i := range applicationCount {
		path := pathOf(applications, applicationNamespace(i), applicationName(i)) + "/status"
		bare.statuses = append(bare.statuses, patch{path: path, body: readyStatus(componentCount, componentCount)})
	}
	return bare
}

// adopt returns how long the bare program takes.
func (f *bareOwner) adopt(b *testing.B) float64 {
	b.Helper()
	began := time.Now()
	uids := f.createApplications(b)
	owned := func(i int) map[string]any { return ownedMetadata(applicationName(i), uids[i]) }
	f.each(b, metadataPatches(b, f.objects, owned), f.merging)
	f.each(b, f.statuses, f.merging)
	return time.Since(began).Seconds()
}

// reset deletes all Applications, after it has removed what makes objects theirs: otherwise these
// would be deleted with them. No process of Waybill may be running.
func (f *bareOwner) reset(b *testing.B) {
	b.Helper()
	if len(f.apps.All()) == 0 {
		return
	}
	f.each(b, metadataPatches(b, f.objects, func(int) map[string]any { return unownedMetadata }), f.merging)
	require.NoError(b, parallel(applicationCount, func(i int) error {
		client := f.client.Resource(applications).Namespace(applicationNamespace(i))
		_, err := client.Patch(b.Context(), applicationName(i), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return client.Delete(b.Context(), applicationName(i), metav1.DeleteOptions{})
	}))
	f.await(b, 0, observe.Any)
}

// metadataPatches returns the patches of the metadata of all objects. metadata returns that of the
// i-th Application's.
func metadataPatches(b testing.TB, objects []patch, metadata func(i int) map[string]any) []patch {
	b.Helper()
	patches := slices.Clone(objects)
	for n := range patches {
		body, err := json.Marshal(map[string]any{"metadata": metadata(n / componentCount)})
		require.NoError(b, err)
		patches[n].body = body
	}
	return patches
}

// ownedMetadata returns the metadata of a component as Waybill writes it.
func ownedMetadata(name string, uid types.UID) map[string]any {
	return map[string]any{
		"annotations": map[string]any{v1alpha1.ApplicationAnnotation: name, v1alpha1.InjectedAnnotation: name},
		"labels":      map[string]any{v1alpha1.PartOfLabel: name},
		"ownerReferences": []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: name, UID: uid,
			Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
		}},
	}
}

// unownedMetadata undoes ownedMetadata.
var unownedMetadata = map[string]any{
	"annotations":     map[string]any{v1alpha1.ApplicationAnnotation: nil, v1alpha1.InjectedAnnotation: nil},
	"labels":          map[string]any{v1alpha1.PartOfLabel: nil},
	"ownerReferences": nil,
}
