package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/excerpt"
)

// subject is the object that a request is about, as its viewer may read it.
type subject struct {
	at      address
	viewer  *viewer
	cluster *fleet.Cluster
	object  *unstructured.Unstructured
	notes   *notes
}

// about serves a page, or does something, for an object that the viewer may read.
func (s *server) about(serve func(context.Context, http.ResponseWriter, *http.Request, *subject)) http.HandlerFunc {
	return s.reads(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readWithin)
		defer cancel()
		at := addressOf(r.PathValue)
		cluster, object, err := get(ctx, viewerOf(r), at)
		if err != nil {
			s.explain(w, r, cluster, at, object != nil, err)
			return
		}
		serve(ctx, w, r, &subject{at: at, viewer: viewerOf(r), cluster: cluster, object: object, notes: &notes{}})
	})
}

// place returns where an engine works for the viewer.
func (s *server) place(v *viewer, cluster *fleet.Cluster, n *notes) fleet.Place {
	at := fleet.NewPlace(v.hub, cluster, s.systemNamespace, n.warnf)
	at.Impersonated = !v.own // the dashboard's own right to impersonate is not lent
	return at
}

func (s *server) placeOf(sub *subject) fleet.Place {
	return s.place(sub.viewer, sub.cluster, sub.notes)
}

// installation returns the object as an installation.
func (sub *subject) installation() (*v1alpha1.ApplicationInstallation, error) {
	inst := &v1alpha1.ApplicationInstallation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sub.object.Object, inst); err != nil {
		return nil, fmt.Errorf("read ApplicationInstallation %s: %w", sub.object.GetName(), err)
	}
	return inst, nil
}

// right returns the attributes of a verb on the object.
func (sub *subject) right(verb string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: verb, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Resource: sub.resource(), Namespace: sub.object.GetNamespace(), Name: sub.object.GetName(),
	}
}

// resource returns the plural of the object's kind, whatever the address calls it.
func (sub *subject) resource() string {
	mapper, err := sub.cluster.Mapper()
	if err != nil {
		return sub.at.resource
	}
	kind := sub.object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return sub.at.resource
	}
	return mapping.Resource.Resource
}

// maxNotes is how many notes a page shows.
const maxNotes = 30

// notes are what the viewer is to know about a page that is good without it. They are safe for concurrent use.
type notes struct {
	mu   sync.Mutex
	said []string
}

func (n *notes) warnf(format string, args ...any) {
	text := excerpt.Of(fmt.Sprintf(format, args...), 2000)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.said) < maxNotes && !slices.Contains(n.said, text) {
		n.said = append(n.said, text)
	}
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.said)
}

// head is the top of each page of an object.
type head struct {
	Kind, Namespace, Name, Cluster string
	ClusterLink, Link              string
	Mark                           mark
	Message                        string
	Deleted                        bool
	Tabs                           []tab
}

// tab leads to another page of the same object.
type tab struct {
	Title, Link string
	Here        bool
}

// pagesOf returns the pages of an object besides the first one, by the last part of their addresses.
func pagesOf(kind string) [][2]string {
	tree, rights := [2]string{"tree", "Tree"}, [2]string{"rights", "What may I do"}
	switch kind {
	case v1alpha1.ApplicationInstallationKind:
		return [][2]string{tree, {"values", "Values"}, {"revisions", "Revisions"}, {"manifests", "Manifests"}, {"diff", "Diff"}, rights}
	case v1alpha1.GitSyncKind:
		return [][2]string{tree, {"commit", "Commit"}, {"manifests", "Manifests"}, {"diff", "Diff"}, rights}
	case v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind:
		return [][2]string{tree, {"diff", "Diff"}, rights}
	}
	return [][2]string{tree, rights}
}

func headOf(sub *subject, here string) head {
	link := sub.at.String()
	h := head{
		Kind: sub.object.GetKind(), Namespace: sub.object.GetNamespace(), Name: sub.object.GetName(), Cluster: sub.cluster.Name(), Link: link,
		Deleted: sub.object.GetDeletionTimestamp() != nil, Tabs: []tab{{Title: "Overview", Link: link, Here: here == ""}},
	}
	if sub.at.cluster.Name != "" {
		h.ClusterLink = objectLink("", "", "kubernetesclusters", sub.at.cluster.Namespace, sub.at.cluster.Name)
	}
	conditions, err := conditionsOf(sub.object)
	if err != nil {
		sub.notes.warnf("%s", err)
	}
	h.Mark, h.Message = verdict(conditions, suspended(sub.object))
	for _, p := range pagesOf(h.Kind) {
		h.Tabs = append(h.Tabs, tab{Title: p[1], Link: link + "/" + p[0], Here: here == p[0]})
	}
	return h
}

// costly are the pages for which something is rendered. They are not read again whenever their object has changed: they say that
// it has.
var costly = map[string]bool{"manifests": true, "diff": true}

// showOf shows a page of an object, which follows it. here is the last part of its address; empty for the first one.
func (s *server) showOf(w http.ResponseWriter, r *http.Request, sub *subject, here, title string, model map[string]any) {
	p := pageOf(sub, here, title, model)
	p.Object = sub.at.String() + "/" + here
	if costly[here] {
		p.Version = sub.object.GetResourceVersion()
	}
	s.show(w, r, here, http.StatusOK, p)
}

// showStatusOf shows a page of an object as it is now: it does not follow it.
func (s *server) showStatusOf(w http.ResponseWriter, r *http.Request, sub *subject, status int, template, title string, model map[string]any) {
	s.show(w, r, template, status, pageOf(sub, template, title, model))
}

func pageOf(sub *subject, here, title string, model map[string]any) page {
	model["Head"] = headOf(sub, here)
	return page{Title: title + " " + sub.object.GetName(), Area: areas[sub.object.GetKind()], Model: model, Troubles: sub.notes.all()}
}

// sources are the charts and repositories that pages look into, for all viewers.
type sources struct {
	// here allows sources on this machine: it is that of the only user.
	here bool
	// dir is where they are kept, and size how much of them; empty for where the user's own are.
	dir  string
	size int64

	mu    sync.Mutex
	known *installation.Sources
	swept time.Time
}

// keepSources is how long a repository that is not used is kept.
const keepSources = time.Hour

// open returns the sources. They are shared: only close closes them.
func (s *sources) open() (*installation.Sources, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		opened, err := installation.OpenIsolated(installation.Isolated{Dir: s.dir, Bytes: s.size, Refuse: !s.here})
		if err != nil {
			return nil, err
		}
		s.known, s.swept = opened, time.Now()
	}
	if time.Since(s.swept) > keepSources {
		s.swept = time.Now()
		_ = s.known.Sweep(keepSources) // a failure to clean up is not worth an error
	}
	return s.known, nil
}

func (s *sources) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil {
		_ = s.known.Close() // a failure to clean up is not worth an error
		s.known = nil
	}
}
