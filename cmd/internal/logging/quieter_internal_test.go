package logging

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A cluster that cannot be discovered does not fill the log: of its thousands of kinds, nothing is said one by one.
func TestQuieter_discovery(t *testing.T) {
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	var told, debug []string
	var mu sync.Mutex // all versions are asked for at once
	utilruntime.ErrorHandlers = quieter([]utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}}, funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		debug = append(debug, args)
	}, funcr.Options{}))

	api := &clienttesting.Fake{}
	for i := range 100 {
		api.Resources = append(api.Resources, &metav1.APIResourceList{GroupVersion: fmt.Sprintf("g%d/v1", i)})
	}
	api.AddReactor("get", "resource", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, errors.New("the document exceeds the limit of 16 MiB")
	})
	_, _ = memory.NewMemCacheClient(&fake.FakeDiscovery{Fake: api}).ServerResourcesForGroupVersion("g1/v1")
	assert.Empty(t, told)
	assert.NotEmpty(t, debug)
	utilruntime.HandleError(errors.New("another"))
	assert.Equal(t, []string{"another"}, told)
}
