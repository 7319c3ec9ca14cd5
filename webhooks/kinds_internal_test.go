package webhooks

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// C50: however many kinds are unknown, the API server is asked once in a while.
func TestKinds_believesAMiss(t *testing.T) {
	server := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	server.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "services", Kind: "Service", Namespaced: true},
	}}}
	now := clocktesting.NewFakePassiveClock(time.Now())
	k := kindsOf(server, now)
	found, err := k.find(schema.GroupKind{Kind: "Service"})
	require.NoError(t, err)
	assert.Equal(t, "services", found.Resource.Resource)
	once := len(server.Actions())

	for i := range 1000 {
		_, err := k.find(schema.GroupKind{Group: "g" + strconv.Itoa(i) + ".example.com", Kind: "Widget"})
		require.True(t, meta.IsNoMatchError(err), "%v", err)
	}
	assert.Len(t, server.Actions(), 2*once, "all is asked for once more")

	server.Resources = append(server.Resources, &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Namespaced: true},
	}})
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	_, err = k.find(widget)
	require.True(t, meta.IsNoMatchError(err), "%v", err)
	now.SetTime(now.Now().Add(missBelieved))
	found, err = k.find(widget)
	require.NoError(t, err)
	assert.Equal(t, "widgets", found.Resource.Resource)
}
