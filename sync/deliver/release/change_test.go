package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/test/env"
)

// untouched vouches for objects as they are now, as a watch that shows them does. No controller writes them.
func (w *world) untouched() func(manifest.ID) string {
	w.Helper()
	seen := map[string]string{}
	core := w.client.CoreV1()
	services, err := core.Services(w.namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for _, o := range services.Items {
		seen["Service/"+o.Name] = o.ResourceVersion
	}
	configs, err := core.ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for _, o := range configs.Items {
		seen["ConfigMap/"+o.Name] = o.ResourceVersion
	}
	templates, err := core.PodTemplates(w.namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for _, o := range templates.Items {
		seen["PodTemplate/"+o.Name] = o.ResourceVersion
	}
	return func(id manifest.ID) string { return seen[id.Kind+"/"+id.Name] }
}

// toObjects returns what was asked of objects, without records.
func (w *world) toObjects(requests []env.Request) []string {
	var found []string
	for _, r := range requests {
		if name := r.URI[strings.LastIndex(r.URI, "/")+1:]; !strings.HasPrefix(name, "sh.helm") && !strings.HasPrefix(name, "secrets") {
			path, _, _ := strings.Cut(r.URI, "?")
			found = append(found, r.Verb+" "+path[strings.LastIndex(path, w.namespace)+len(w.namespace)+1:])
		}
	}
	return found
}

// ordered is a PodTemplate and a Service with lists whose items have keys.
func ordered(image, env, ports, args string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: one}
spec: {selector: {app: one}, ports: %[3]s}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: one}
template:
  metadata: {labels: {app: one}}
  spec: {containers: [{name: app, image: %[1]q, env: %[2]s, args: %[4]s}]}
`, image, env, ports, args)
}

const (
	twoEnvs, threeEnvs = `[{name: A, value: "1"}, {name: C, value: $(A)}]`, `[{name: A, value: "2"}, {name: B, value: "2"}, {name: C, value: $(B)}]`
	onePort, twoPorts  = `[{name: web, port: 80}]`, `[{name: tls, port: 443}, {name: web, port: 81}]`
)

// K47: what is untouched is not read before it is written, and what does not change is sent no request.
func TestEnsure_readsNothingThatIsUntouched(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	d := w.desired("web", values{"greeting": "changed"})
	d.UntouchedAt = w.untouched()
	var result release.Result
	requests := w.calls(func() { result = w.ensure(d) })
	assert.ElementsMatch(t, []string{
		"get serviceaccounts/web", "get deployments/web", // nothing is known of them
		"patch configmaps/web", "get configmaps/web-extra", "delete configmaps/web-extra",
	}, w.toObjects(requests))
	assert.Equal(t, "changed", w.greeting())
	assert.Equal(t, []string{"Service web"}, named(result.Untouched))
	assert.Len(t, result.Objects, 4)
	assert.Len(t, result.Written, 3)
	for id, written := range result.Written {
		if id.Kind == "ConfigMap" {
			assert.IsType(t, &metav1.PartialObjectMetadata{}, written, "nothing else is needed of what was not read")
			assert.NotEmpty(t, written.GetManagedFields())
		}
	}
	_, err := w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

func named(ids []manifest.ID) []string {
	var names []string
	for _, id := range ids {
		names = append(names, id.Kind+" "+id.Name)
	}
	return names
}

// What was not read ends up as what was: lists keep the order of the chart, and what it does not name any more goes.
func TestEnsure_changesListsOfWhatIsUntouched(t *testing.T) {
	specs := map[bool]any{}
	for _, untouched := range []bool{false, true} {
		w := newWorld(t)
		w.ensure(w.template(ordered("app:1", twoEnvs, onePort, "[a, b]")))
		var requests []string
		for _, text := range []string{ordered("app:2", threeEnvs, twoPorts, "[c]"), ordered("app:2", twoEnvs, onePort, "[]")} {
			d := w.template(text)
			if untouched {
				d.UntouchedAt = w.untouched()
			}
			requests = append(requests, w.toObjects(w.calls(func() { w.ensure(d) }))...)
			template, err := w.client.CoreV1().PodTemplates(w.namespace).Get(t.Context(), "one", metav1.GetOptions{})
			require.NoError(t, err)
			service, err := w.client.CoreV1().Services(w.namespace).Get(t.Context(), "one", metav1.GetOptions{})
			require.NoError(t, err)
			for i := range service.Spec.Ports {
				service.Spec.Ports[i].NodePort = 0
			}
			container := template.Template.Spec.Containers[0]
			specs[untouched] = append(listOf(specs[untouched]), container, service.Spec.Ports)
			require.Len(t, container.Env, strings.Count(text, "value:"))
			assert.Equal(t, "C", container.Env[len(container.Env)-1].Name, "a variable may refer to those before it")
		}
		if untouched {
			assert.ElementsMatch(t, []string{"patch services/one", "patch podtemplates/one", "patch services/one", "patch podtemplates/one"}, requests)
		}
	}
	assert.Equal(t, specs[false], specs[true])
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// Where what is known is out of date, or says nothing of what matters, the object is read after all.
func TestEnsure_readsWhatMayBeTouched(t *testing.T) {
	nothing := func(*world) {}
	cases := map[string]struct {
		reason string
		// before happens before it is known what the objects are, and meanwhile after that.
		before, meanwhile func(w *world)
		ignore            string
		want              []string
		greeting          string
	}{
		"Edited": {"an edit that no watch has shown yet is corrected", nothing, func(w *world) {
			_, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), "web", types.MergePatchType, []byte(`{"data":{"greeting":"theirs"}}`), metav1.PatchOptions{})
			require.NoError(w, err)
		}, "", []string{"get configmaps/web", "patch configmaps/web"}, "two"},
		"Deleted": {"what is gone is created", nothing, func(w *world) {
			require.NoError(w, w.client.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), "web", metav1.DeleteOptions{}))
		}, "", []string{"get configmaps/web", "create configmaps"}, "two"},
		"Failed": {"a revision that failed may have set what no other knows of", func(w *world) {
			_, err := w.try(w.Context(), w.desired("web", values{"broken": true, "greeting": "failed"}))
			require.Error(w, err)
		}, nothing, "", []string{"get configmaps/web", "patch configmaps/web"}, "two"},
		"Ignored": {"what others have set stays", nothing, nothing, "/data/greeting", []string{"get configmaps/web"}, "hello"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.desired("web", nil))
			tc.before(w)
			d := w.desired("web", values{"greeting": "two"})
			if tc.ignore != "" {
				rules, err := ignore.Compile([]v1alpha1.IgnoredDifference{{JSONPointers: []string{tc.ignore}}})
				require.NoError(t, err)
				d.Ignored = rules
			}
			d.UntouchedAt = w.untouched()
			tc.meanwhile(w)
			asked := w.toObjects(w.calls(func() { w.ensure(d) }))
			asked = slices.DeleteFunc(asked, func(request string) bool { return !strings.Contains(request, " configmaps") })
			assert.Equal(t, tc.want, asked, tc.reason)
			assert.Equal(t, tc.greeting, w.greeting(), tc.reason)
		})
	}
}

// An upgrade that fails half-way is undone by what is there, and not by what was known before it.
func TestEnsure_undoesWhatIsUntouched(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	d := w.desired("web", values{"broken": true, "greeting": "changed"})
	d.Options.Atomic = true
	d.UntouchedAt = w.untouched()
	_, err := w.try(t.Context(), d)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "and was rolled back")
	assert.Equal(t, "hello", w.greeting())
}
