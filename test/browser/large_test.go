package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// A fleet of 1,000 clusters can be looked at: in pages, and by what one asks for.
func TestLarge_thousandClusters(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	removeAll(t, w.hub, &v1alpha1.KubernetesCluster{}, ns)
	c := clientOf(t, w.hub.RESTConfig())
	var writers errgroup.Group
	writers.SetLimit(16)
	for i := range 1000 {
		writers.Go(func() error {
			k := city(i % len(cities))
			status := k.Status
			k.Namespace, k.Name = ns, fmt.Sprintf("cluster-%03d", i)
			k.Labels["number"] = fmt.Sprint(i)
			if err := c.Create(t.Context(), k); err != nil {
				return err
			}
			before := k.DeepCopy()
			k.Status = status
			return c.Status().Patch(t.Context(), k, client.MergeFrom(before))
		})
	}
	require.NoError(t, writers.Wait())
	b := open(t, start(t, tenant(t, w.hub, ns), ns))
	b.awaitText("of 1000")
	assert.Less(t, eval[int](b, `document.getElementsByTagName("*").length`), 10_000, "a page of moderate size")
	b.check()
	b.click(`a[rel=next]`)
	b.awaitText("cluster-100")
	assert.NotContains(t, b.text(), "cluster-099")

	b.set("[name=selector]", "number in (5,777)")
	b.press(kb.Enter)
	b.awaitText("cluster-777")
	assert.Contains(t, b.text(), "of 2")
	assert.NotContains(t, b.text(), "cluster-100")
}
