package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/events"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/cmd/internal/tree"
	"waybill.dev/waybill/sync/manifest"
)

// address is where an object is.
type address struct {
	cluster         types.NamespacedName // of the KubernetesCluster; zero for the hub
	resource        string
	namespace, name string
}

// addressOf reads the address of the object that a request is about. A dash stands for nothing.
func addressOf(value func(string) string) address {
	read := func(part string) string {
		if v := value(part); v != "-" {
			return v
		}
		return ""
	}
	return address{
		cluster:  types.NamespacedName{Namespace: read("clusterNamespace"), Name: read("cluster")},
		resource: read("resource"), namespace: read("namespace"), name: read("name"),
	}
}

// String is the path of the object's page.
func (a address) String() string {
	return objectLink(a.cluster.Namespace, a.cluster.Name, a.resource, a.namespace, a.name)
}

// done are what pages say after an action.
var done = map[string]string{
	"reconcile": "It was asked to reconcile.", "suspend": "It is suspended.", "resume": "It goes on.", "upgrade": "It was changed: the conditions say how far it is.",
	"rollback": "It goes back: the conditions say how far it is.", "uninstall": "It is being deleted.", "install": "It was created: the conditions say how far it is.",
}

// object shows one object.
func (s *server) object(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	p := page{Title: sub.object.GetName(), Area: areas[sub.object.GetKind()]}
	if sub.at.cluster.Name == "" && slices.ContainsFunc(s.inventory.all(), func(f *follow) bool { return f.kind == sub.object.GetKind() }) {
		p.Kinds, p.One = []string{sub.object.GetKind()}, client.ObjectKeyFromObject(sub.object).String()
	} else {
		p.Object = sub.at.String()
	}
	model, err := s.describe(ctx, sub)
	if err != nil {
		p.Troubles = append(p.Troubles, err.Error())
	}
	model["Head"], model["Done"], model["Actions"] = headOf(sub, ""), done[r.URL.Query().Get("done")], s.permissions(ctx, sub)
	p.Model, p.Troubles = model, append(p.Troubles, sub.notes.all()...)
	s.show(w, r, "object", http.StatusOK, p)
}

// areas are the entries of the menu that pages of objects belong to.
var areas = map[string]string{
	v1alpha1.KubernetesClusterKind: "fleet", v1alpha1.ApplicationInstallationKind: "fleet",
	v1alpha1.ApplicationDefinitionKind: "catalog",
	v1alpha1.GitSyncKind:               "syncs", v1alpha1.KubernetesApplicationKind: "syncs", v1alpha1.KubernetesApplicationResourceKind: "syncs",
}

// get reads an object, of one of our kinds only. It returns an object if the cluster was asked for it.
func get(ctx context.Context, v *viewer, at address) (*fleet.Cluster, *unstructured.Unstructured, error) {
	cluster, err := v.cluster(ctx, at.cluster)
	if err != nil {
		return cluster, nil, err
	}
	kind, err := kindOf(cluster, at.resource)
	if err != nil {
		return cluster, nil, err
	}
	c, err := cluster.Client()
	if err != nil {
		return cluster, nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = c.Get(ctx, client.ObjectKey{Namespace: at.namespace, Name: at.name}, object)
	return cluster, object, err
}

func kindOf(cluster *fleet.Cluster, resource string) (schema.GroupVersionKind, error) {
	mapper, err := cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := mapper.KindFor(v1alpha1.GroupVersion.WithResource(resource))
	if err != nil && !unanswered(err) {
		err = fmt.Errorf("%s has no %s: %w", cluster.Name(), resource, err)
	}
	return kind, err
}

// explain shows why an object is not shown. asked is true if the answer is about the object itself, and not
// about the way to it.
func (s *server) explain(w http.ResponseWriter, r *http.Request, cluster *fleet.Cluster, at address, asked bool, err error) {
	where, away := at.cluster.String(), unanswered(err)
	if cluster != nil {
		where, err = cluster.Name(), cluster.Explain(err)
	}
	if k := s.inventory.kubernetesCluster(r.Context(), viewerOf(r), at.cluster); k != nil && k.Status.LastSeen != nil && (away || !k.Status.Reachable) {
		err = fmt.Errorf("%w. The hub has last seen it at %s", err, k.Status.LastSeen.Format("2006-01-02 15:04:05"))
	}
	status, title := http.StatusBadGateway, fmt.Sprintf("%s %s of %s cannot be read", at.resource, at.name, where)
	switch {
	case errors.As(err, new(*fleet.NoClusterError)):
		status, title = http.StatusNotFound, fmt.Sprintf("There is no KubernetesCluster %s", where)
	case asked && apierrors.IsNotFound(err):
		status, title = http.StatusNotFound, fmt.Sprintf("There is no %s %s in %s", at.resource, at.name, where)
	case asked && apierrors.IsForbidden(err):
		status, title = http.StatusForbidden, fmt.Sprintf("You may not read %s %s of %s", at.resource, at.name, where)
	}
	s.fail(w, r, status, title, err)
}

// describe returns what the page of an object has. An error says what of it is missing.
func (s *server) describe(ctx context.Context, sub *subject) (map[string]any, error) {
	command := "waybill describe " + strings.ToLower(sub.object.GetKind()) + "/" + sub.object.GetName()
	if namespace := sub.object.GetNamespace(); namespace != "" {
		command += " -n " + namespace
	}
	if sub.at.cluster.Name != "" {
		command += " --cluster " + sub.at.cluster.String()
	}
	conditions, err := conditionsOf(sub.object)
	shown, of := sections(sub.at.cluster, sub.object, s.offers(ctx, sub.viewer))
	shown = append(shown, conditionSection(conditions))
	found, gaps, missing := events.List(ctx, []tree.Member{{ID: idOf(sub.object), Cluster: sub.cluster}})
	shown = append(shown, eventSection(found))
	model := map[string]any{"Sections": shown, "Manifest": manifestOf(sub.object, s.curtain(ctx, s.placeOf(sub))), "Command": command, "Entry": ""}
	if sub.object.GetKind() == v1alpha1.ApplicationDefinitionKind && sub.at.cluster.Name == "" {
		model["Entry"] = "/catalog/" + url.PathEscape(sub.object.GetName())
	}
	return model, errors.Join(append(gaps, err, of, missing)...)
}

func idOf(object *unstructured.Unstructured) manifest.ID {
	kind := object.GroupVersionKind()
	return manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// manifestOf returns an object as YAML, without the data of Secrets and what only API servers read. The values of an
// installation are on a page of their own, where those are hidden that its chart marks as secret.
func manifestOf(object *unstructured.Unstructured, hides *curtain) string {
	shown := object.DeepCopy()
	shown.SetManagedFields(nil)
	if shown.GroupVersionKind() == v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind) {
		for _, field := range []string{"values", "valuesBlock"} {
			if _, there, _ := unstructured.NestedFieldNoCopy(shown.Object, "spec", field); there {
				_ = unstructured.SetNestedField(shown.Object, "see the page Values", "spec", field) // spec is there
			}
		}
		annotations := shown.GetAnnotations() // kubectl's copy of the object has them, too
		delete(annotations, mask.LastApplied)
		shown.SetAnnotations(annotations)
	} else {
		shown = hides.one(shown)
	}
	content, err := yaml.Marshal(shown.Object)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// followed are the pages of an object that have a stream, by the last part of their addresses; the first page has none.
var followed = []string{"", "tree", "values", "revisions", "manifests", "diff", "commit", "rights"}

// followObject has a stream notified when the object of its page changes, and on the page of a tree, what that consists of. It
// returns which object that is; nil if the page is about kinds.
func (s *server) followObject(r *http.Request, to *stream) (*shown, error) {
	path := append(strings.Split(strings.TrimPrefix(r.URL.Query().Get("object"), "/objects/"), "/"), "")
	if len(path) <= len(objectPath) || len(path) > len(objectPath)+2 || !slices.Contains(followed, path[len(objectPath)]) {
		return nil, nil // the page is about kinds of the inventory
	}
	page := path[len(objectPath)]
	whole := page == "tree"
	if err := s.spend(viewerOf(r)); err != nil {
		return nil, err
	}
	at := addressOf(func(part string) string { return path[slices.Index(objectPath, part)] })
	cluster, err := viewerOf(r).cluster(r.Context(), at.cluster)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(cluster, at.resource)
	if err != nil {
		return nil, cluster.Explain(err)
	}
	c, err := watcher(cluster)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	f := newFollow(listing{c}, object, func() client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}, nil)
	read := authorizationv1.ResourceAttributes{Verb: "get", Group: kind.Group, Resource: at.resource, Namespace: at.namespace, Name: at.name}
	ctx, stop := context.WithCancel(r.Context())
	f.changed = func(string, string) {
		to.tell("", "")
		if f.stands().State != forbidden {
			return
		}
		if !whole { // a tree says for itself what of it may not be watched, its object included
			watch := read
			watch.Verb = "watch"
			to.remark(fmt.Sprintf("You may not %s of %s. Changes are shown when you reload the page.", describeRight(watch), cluster.Name()))
		}
		stop() // it would ask again and again
	}
	f.standing.Namespace, f.selects = at.namespace, fields.OneTermEqualSelector("metadata.name", at.name)
	f.keep = at.alone
	if whole {
		v := viewerOf(r)
		s.trees.follow(r.Context(), treePage{v, at.String()}, newBranches(to, func() func() { return s.watching(v) }))
	}
	go func() {
		defer stop()
		_ = f.run(ctx) // without it, the page is what it was when it was opened
	}()
	return &shown{at: at.cluster, in: cluster, what: read, page: page, follow: f}, nil
}

// alone returns what is kept of whatever a watch of one object sends: which one it is, and its version. Nothing else of it is
// shown, and a server that sends others, or large ones, has them take no memory.
func (a address) alone(sent any) (any, error) {
	known := &unstructured.Unstructured{}
	known.SetNamespace(a.namespace)
	known.SetName(a.name)
	if object, ok := sent.(client.Object); ok {
		known.SetResourceVersion(object.GetResourceVersion())
	}
	return known, nil
}

// shown is the object of a page.
type shown struct {
	at     types.NamespacedName // of the KubernetesCluster; zero for the hub
	in     *fleet.Cluster
	what   authorizationv1.ResourceAttributes
	page   string  // the last part of its address
	follow *follow // nil if the page has a log
}

// news returns what a page is sent when its object has changed: to read it again, or which version there is now, where that is
// costly. It is empty as long as that is not known.
func (o *shown) news(ctx context.Context) string {
	if o == nil || !costly[o.page] {
		return change
	}
	switch o.follow.stands().State {
	case connecting, lost:
		return "" // when it answers, the stream is told
	case forbidden:
		return change
	}
	cache.WaitForCacheSync(ctx.Done(), o.follow.informer.HasSynced) // it has answered
	for _, kept := range o.follow.informer.GetStore().List() {
		if object, ok := kept.(client.Object); ok {
			return "event: version\ndata: " + object.GetResourceVersion() + "\n\n"
		}
	}
	return change // it is gone
}

// objectPath are the parts of the address of an object.
var objectPath = []string{"clusterNamespace", "cluster", "resource", "namespace", "name"}
