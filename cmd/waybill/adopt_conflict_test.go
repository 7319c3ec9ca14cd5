package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
)

// meanwhile is a user who says yes after something else has happened.
type meanwhile struct {
	io.Reader
	happens func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.happens != nil {
		m.happens()
		m.happens = nil
	}
	return m.Reader.Read(p)
}

// adoptWhile adopts, and has something happen after the plan was shown.
func adoptWhile(t *testing.T, kubeconfig, namespace string, happens func()) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run([]string{"waybill", "adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", "ConfigMap", "--kubeconfig", kubeconfig},
		genericiooptions.IOStreams{In: &meanwhile{Reader: strings.NewReader("yes\n"), happens: happens}, Out: &out, ErrOut: &errOut})
	return result{out: out.String(), errOut: errOut.String(), code: code}
}

// change edits a ConfigMap as another user.
func change(t *testing.T, c client.Client, namespace, name string, edit func(*corev1.ConfigMap)) {
	t.Helper()
	object := configMap(namespace, name)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	edit(object)
	require.NoError(t, c.Update(t.Context(), object))
}

// A90: what another user changed after the plan was shown is not overwritten.
func TestAdopt_overwritesNoChange(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	create(t, c, application(namespace, "shop", "shop"))
	got := adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
		app := adopted(t, c, namespace, "shop")
		app.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Secret", Name: "theirs"}}
		require.NoError(t, c.Update(context.Background(), app))
	})
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "error: write Application/shop in "+namespace+
		": it has been modified meanwhile; nothing was written: run the command again to see what is to be done now\n")
	app := adopted(t, c, namespace, "shop")
	require.Len(t, app.Spec.Components, 1)
	assert.Equal(t, "theirs", app.Spec.Components[0].Name)
	assert.Empty(t, annotationOf(t, c, namespace, "settings"))

	got = adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
		change(t, c, namespace, "settings", func(o *corev1.ConfigMap) { o.Data = map[string]string{"a": "b"} })
	})
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "settings"), "another change is no obstacle")
	app = adopted(t, c, namespace, "shop")
	assert.Len(t, app.Spec.Components, 2, "the command run again adds to what is there now")
	var managers []string
	for _, m := range app.ManagedFields {
		managers = append(managers, m.Manager)
	}
	assert.Contains(t, managers, cli.FieldManager)
}

// Of what another user created or took after the plan was shown, nothing is taken.
func TestAdopt_takesNothingMeanwhile(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	got := adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
		create(t, c, application(namespace, "shop", "shop"))
	})
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "it was created concurrently by another client; nothing was written: run the command again")

	for reason, edit := range map[string]func(*corev1.ConfigMap){
		"another Application": func(o *corev1.ConfigMap) {
			o.Annotations = map[string]string{v1alpha1.ApplicationAnnotation: "them"}
		},
		"other labels": func(o *corev1.ConfigMap) { o.Labels, o.Annotations = map[string]string{"app": "else"}, nil },
	} {
		create(t, c, labelled(configMap(namespace, "taken"), "shop"))
		got = adoptWhile(t, cluster.KubeconfigFile(), namespace, func() { change(t, c, namespace, "taken", edit) })
		assert.Equal(t, 2, got.code, reason)
		assert.Contains(t, got.errOut, "annotate ConfigMap/taken: it has been modified meanwhile, and is left as it is", reason)
		assert.NotEqual(t, "shop", annotationOf(t, c, namespace, "taken"), reason)
		require.NoError(t, c.Delete(t.Context(), configMap(namespace, "taken")))
	}
}
