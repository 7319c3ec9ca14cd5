package applicationdefinition_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// P11, K28, C45: a definition is copied to the user clusters, without its sources and with
// nothing else missing.
func TestCopies_areMade(t *testing.T) {
	s := newSuite(t)
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.engage("eu-2", shared(t, "other").RESTConfig(), nil)
	s.define("web", func(d *v1alpha1.ApplicationDefinition) {
		d.Labels = map[string]string{"team": "a", v1alpha1.OwnerHashLabel: "h"}
		d.Annotations = map[string]string{
			"note": "kept", v1alpha1.OwnerAnnotation: "git", corev1.LastAppliedConfigAnnotation: "templates",
		}
		d.Spec.DefaultVersion = "1.0.0"
		d.Spec.Versions = append(d.Spec.Versions, version("2.0.0"))
		d.Spec.Versions[0].Deprecated = true
	})
	hub := until(t, s, "web", isReady)
	assert.EqualValues(t, 2, hub.Status.Clusters)
	assert.Equal(t, "2.0.0", hub.Status.Versions)
	assert.Equal(t, []string{v1alpha1.Finalizer}, hub.Finalizers)

	for _, name := range []string{"user", "other"} {
		copied := get(t, s.user(name), "web")
		require.NotNil(t, copied)
		assert.Equal(t, map[string]string{"team": "a"}, copied.Labels)
		assert.Equal(t, map[string]string{"note": "kept", v1alpha1.CopyOfAnnotation: hubID}, copied.Annotations,
			"marks of what delivers the original are not the copy's")
		assert.Empty(t, copied.Finalizers)
		want := hub.Spec.DeepCopy()
		for i := range want.Versions {
			want.Versions[i].Template = nil
		}
		assert.Equal(t, *want, copied.Spec)
		assert.Equal(t, v1alpha1.FieldManager, copied.ManagedFields[0].Manager)
		assert.Equal(t, hub.Status.Versions, copied.Status.Versions, "the table shows what can be installed")
	}
}

// K29, K31, K33: clusters that are added later get everything; changes, new versions and
// deletions arrive.
func TestCopies_follow(t *testing.T) {
	s := newSuite(t)
	s.define("web")
	until(t, s, "web", isReady)
	user := s.user("user")
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	until(t, user, "web", present)

	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) {
		d.Labels = map[string]string{"team": "a"}
		d.Spec.Versions = append(d.Spec.Versions, version("2.0.0"))
	})
	until(t, user, "web", func(d *v1alpha1.ApplicationDefinition) bool {
		return len(d.Spec.Versions) == 2 && d.Labels["team"] == "a"
	})
	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) {
		d.Labels, d.Spec.Description = nil, ""
		d.Spec.Versions = d.Spec.Versions[1:]
	})
	until(t, user, "web", func(d *v1alpha1.ApplicationDefinition) bool {
		return len(d.Spec.Versions) == 1 && d.Spec.Description == "" && len(d.Labels) == 0
	})
	require.NoError(t, s.Delete(t.Context(), newDefinition("web")))
	until(t, user, "web", absent)
	until(t, s, "web", absent)
}

// K30, C45: a cluster that is the hub gets no copies, however it is reached.
func TestCopies_notOnTheHub(t *testing.T) {
	s := newSuite(t)
	s.engage("self", nil, nil)
	s.engage("self-too", shared(t, "hub").RESTConfig(), nil)
	s.define("web")
	d := until(t, s, "web", isReady)
	assert.Zero(t, d.Status.Clusters)
	assert.NotContains(t, d.Annotations, v1alpha1.CopyOfAnnotation)
	assert.NotNil(t, d.Spec.Versions[0].Template)
}

// K32: the hub is the single source of truth. What others do to a copy is corrected at once.
func TestCopies_arePutRight(t *testing.T) {
	cases := map[string]struct {
		reason string
		harm   func(*testing.T, client.Client)
	}{
		"Edited": {
			reason: "an edit of the spec",
			harm: func(t *testing.T, c client.Client) {
				change(t, c, "web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "mine" })
			},
		},
		"Added": {
			reason: "a version that the hub does not offer",
			harm: func(t *testing.T, c client.Client) {
				change(t, c, "web", func(d *v1alpha1.ApplicationDefinition) {
					d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: "9.9.9"})
				})
			},
		},
		"Filled": {
			reason: "a field that the hub leaves empty",
			harm: func(t *testing.T, c client.Client) {
				change(t, c, "web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.DisplayName = "mine" })
			},
		},
		"MarkTaken": {
			reason: "the mark that makes it a copy",
			harm: func(t *testing.T, c client.Client) {
				change(t, c, "web", func(d *v1alpha1.ApplicationDefinition) { delete(d.Annotations, v1alpha1.CopyOfAnnotation) })
			},
		},
		"LabelTaken": {
			reason: "a label of the original",
			harm: func(t *testing.T, c client.Client) {
				change(t, c, "web", func(d *v1alpha1.ApplicationDefinition) { delete(d.Labels, "team") })
			},
		},
		"Deleted": {
			reason: "the copy itself",
			harm: func(t *testing.T, c client.Client) {
				require.NoError(t, c.Delete(t.Context(), newDefinition("web")))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSuite(t)
			s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
			s.define("web", func(d *v1alpha1.ApplicationDefinition) { d.Labels = map[string]string{"team": "a"} })
			until(t, s, "web", isReady)
			user := s.user("user")
			right := func(d *v1alpha1.ApplicationDefinition) bool {
				return d != nil && d.Spec.Description == "a web server" && d.Annotations[v1alpha1.CopyOfAnnotation] == hubID &&
					d.Labels["team"] == "a" && d.Spec.DisplayName == "" && slices.Equal(versionsOf(d), []string{"1.0.0"})
			}
			require.True(t, right(get(t, user, "web")))
			tc.harm(t, user)
			t.Log(tc.reason)
			until(t, user, "web", right) // because of an event: there is no interval
		})
	}
}

func versionsOf(d *v1alpha1.ApplicationDefinition) []string {
	var list []string
	for _, v := range d.Spec.Versions {
		list = append(list, v.Version)
	}
	return list
}

// K32: what was edited or left behind while no controller ran is found at its start; what is
// as it should be costs no write.
func TestCopies_areComparedAtAStart(t *testing.T) {
	s := newSuite(t)
	config, err := shared(t, "user").AddUser("starting", "system:masters")
	require.NoError(t, err)
	s.engage("eu-1", config, nil)
	for _, name := range []string{"edited", "fine", "gone"} {
		s.define(name)
		until(t, s, name, isReady)
	}
	s.stop()
	user := s.user("user")
	change(t, user, "edited", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "mine" })
	change(t, s, "gone", func(d *v1alpha1.ApplicationDefinition) { d.Finalizers = nil })
	require.NoError(t, s.Delete(t.Context(), newDefinition("gone")))
	since, err := shared(t, "user").AuditMark(t.Context())
	require.NoError(t, err)

	s.start()
	s.registry.Ensure(s.key("eu-1"), "a", config)
	until(t, user, "edited", func(d *v1alpha1.ApplicationDefinition) bool { return d.Spec.Description == "a web server" })
	until(t, user, "gone", absent)
	writes, err := shared(t, "user").Requests(t.Context(), since, env.ByUser("starting"), env.Writes)
	require.NoError(t, err)
	for _, w := range writes {
		assert.NotEqual(t, "fine", w.Name, "%s %s", w.Verb, w.URI)
	}
}

// When nothing changed, nothing is asked.
func TestCopies_requestsWhenNothingChanged(t *testing.T) {
	s := newSuite(t)
	config, err := shared(t, "user").AddUser("quiet", "system:masters")
	require.NoError(t, err)
	s.engage("eu-1", config, nil)
	s.define("web")
	until(t, s, "web", isReady)
	onHub, err := shared(t, "hub").AuditMark(t.Context())
	require.NoError(t, err)
	inUser, err := shared(t, "user").AuditMark(t.Context())
	require.NoError(t, err)
	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.ReconcileAtAnnotation, "now")
	})
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return d.Status.LastHandledReconcileAt == "now" })
	requests, err := shared(t, "user").Requests(t.Context(), inUser, env.ByUser("quiet"), env.Calls, env.Accepted, func(r env.Request) bool {
		return r.Resource == "applicationdefinitions"
	})
	require.NoError(t, err)
	assert.Empty(t, requests)
	writes, err := shared(t, "hub").Requests(t.Context(), onHub, env.Writes, env.Accepted, func(r env.Request) bool {
		return r.Resource == "applicationdefinitions" && r.Name == "web"
	})
	require.NoError(t, err)
	assert.Len(t, writes, 2, "the annotation by us, and one status by the controller")
}

// A definition of that name that is not ours is not overwritten.
func TestCopies_foreignDefinition(t *testing.T) {
	s := newSuite(t)
	user := s.user("user")
	theirs := newDefinition("web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "theirs" })
	require.NoError(t, user.Create(t.Context(), theirs))
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.engage("eu-2", shared(t, "other").RESTConfig(), nil)
	s.define("web")
	d := until(t, s, "web", says(v1alpha1.CopyFailedReason, "already exists in the cluster"))
	assert.Equal(t, "cluster "+s.key("eu-1").String()+": an ApplicationDefinition of that name already exists in the cluster and is not a copy from this hub: "+
		"delete it there, or rename this one", condition(d, v1alpha1.ReadyCondition).Message)
	assert.EqualValues(t, 1, d.Status.Clusters, "the other cluster has its copy")
	assert.Equal(t, "theirs", get(t, user, "web").Spec.Description)

	require.NoError(t, user.Delete(t.Context(), theirs))
	until(t, s, "web", isReady)
	assert.Equal(t, hubID, get(t, user, "web").Annotations[v1alpha1.CopyOfAnnotation])
}

// A cluster that refuses a copy is named, and tried again.
func TestCopies_refused(t *testing.T) {
	s := newSuite(t)
	reader, err := shared(t, "user").AddUser("reader")
	require.NoError(t, err)
	grantReading(t, s.user("user"), "reader")
	s.engage("eu-1", reader, nil)
	s.define("web")
	d := until(t, s, "web", says(v1alpha1.CopyFailedReason, `User "reader" cannot patch resource "applicationdefinitions"`))
	assert.Contains(t, condition(d, v1alpha1.ReadyCondition).Message, "cluster "+s.key("eu-1").String()+": write the copy: ")
	s.registry.Ensure(s.key("eu-1"), "b", shared(t, "user").RESTConfig())
	until(t, s, "web", isReady)
}
