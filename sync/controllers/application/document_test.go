package application_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// create creates the objects of an example in the test's namespace.
func (w *world) create(file string) {
	w.T.Helper()
	content, err := os.ReadFile("../../../examples/application/" + file)
	require.NoError(w.T, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(w.T, err)
		if len(object.Object) > 0 {
			w.Create(object)
		}
	}
}

// ownsAll reports whether every component of an Application is owned by it.
func ownsAll(app *v1alpha1.Application) bool {
	return !slices.ContainsFunc(app.Status.Components, func(c v1alpha1.ComponentStatus) bool { return !c.Owned })
}

// A5, A43-A45, A81: the document's WordPress is an Application of six components and a health
// check, all of which go with it.
func TestDocument_composition(t *testing.T) {
	w := newWorld(t)
	w.create("composition/wordpress.yaml")
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wordpress"}}
	hub.Await(w.World, app, "not six components of its own", func(app *v1alpha1.Application) bool {
		return len(app.Status.Installed) == 6 && ownsAll(app) && app.Status.Ready == metav1.ConditionTrue
	})
	assert.Equal(t, []string{
		"Secret/mysql-pass", "Service/wordpress-mysql-hsvc", "Service/wordpress-webserver-hsvc", "Service/wordpress-webserver-svc",
		"StatefulSet.apps/wordpress-mysql", "StatefulSet.apps/wordpress-webserver",
	}, app.Status.Installed)
	w.delete(app)
	w.AwaitGone(&appsv1.StatefulSet{}, "wordpress-webserver")
}

// A46, A47, A51, A69: two Applications, of which one needs the other; deleting one leaves the
// other alone.
func TestDocument_aggregation(t *testing.T) {
	w := newWorld(t)
	w.create("aggregation/wordpress.yaml")
	wordpress := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "wordpress"}}
	mysql := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "mysql"}}
	hub.Await(w.World, wordpress, "not its own components and the dependency", func(app *v1alpha1.Application) bool {
		return len(app.Status.Installed) == 4 && ownsAll(app)
	})
	assert.Equal(t, "Application/mysql", wordpress.Status.Installed[3])
	hub.Await(w.World, mysql, "components", func(app *v1alpha1.Application) bool { return len(app.Status.Installed) == 3 })

	w.delete(wordpress)
	w.AwaitGone(&appsv1.StatefulSet{}, "wordpress-webserver")
	assert.True(t, w.Exists(&appsv1.StatefulSet{}, "mysql"))
	require.True(t, w.Exists(mysql, "mysql"))
	assert.Len(t, mysql.Status.Installed, 3)
}
