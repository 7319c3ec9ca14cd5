package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// objectPage is the page of one object.
type objectPage struct {
	Kind, Namespace, Name, Cluster string
	ClusterLink                    string
	Mark                           mark
	Message                        string
	Deleted                        bool
	Sections                       []section
	Manifest                       string
	Tree                           string // its address
	// Command shows the same in a terminal.
	Command string
}

func (s *server) object(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readWithin)
	defer cancel()
	at := addressOf(r.PathValue)
	cluster, object, err := get(ctx, viewerOf(r), at)
	if err != nil {
		s.explain(w, r, cluster, at, object != nil, err)
		return
	}
	p := page{Title: object.GetName(), Area: areas[object.GetKind()]}
	if at.cluster.Name == "" && slices.ContainsFunc(s.inventory.all(), func(f *follow) bool { return f.kind == object.GetKind() }) {
		p.Kinds = []string{object.GetKind()}
	} else {
		p.Object = at.String()
	}
	model, err := s.describe(ctx, at, cluster, object)
	if err != nil {
		p.Troubles = append(p.Troubles, err.Error())
	}
	p.Model = model
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
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("%s has no %s: %w", cluster.Name(), resource, cluster.Explain(err))
	}
	return kind, nil
}

// explain shows why an object is not shown. asked is true if the answer is about the object itself, and not
// about the way to it.
func (s *server) explain(w http.ResponseWriter, r *http.Request, cluster *fleet.Cluster, at address, asked bool, err error) {
	where := at.cluster.String()
	if cluster != nil {
		where, err = cluster.Name(), cluster.Explain(err)
	}
	if k := s.inventory.kubernetesCluster(r.Context(), viewerOf(r), at.cluster); k != nil && k.Status.LastSeen != nil && !k.Status.Reachable {
		err = fmt.Errorf("%w. The hub has last seen it at %s", err, k.Status.LastSeen.Format("2006-01-02 15:04:05"))
	}
	status, title := http.StatusBadGateway, fmt.Sprintf("%s %s of %s cannot be read", at.resource, at.name, where)
	switch {
	case asked && apierrors.IsNotFound(err):
		status, title = http.StatusNotFound, fmt.Sprintf("There is no %s %s in %s", at.resource, at.name, where)
	case asked && apierrors.IsForbidden(err):
		status, title = http.StatusForbidden, fmt.Sprintf("You may not read %s %s of %s", at.resource, at.name, where)
	}
	s.fail(w, r, status, title, err)
}

// describe returns the page of an object. An error says what of it is missing.
func (s *server) describe(ctx context.Context, at address, cluster *fleet.Cluster, object *unstructured.Unstructured) (objectPage, error) {
	p := objectPage{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Cluster: cluster.Name(),
		Deleted: object.GetDeletionTimestamp() != nil, Tree: at.String() + "/tree",
		Command: "waybill describe " + strings.ToLower(object.GetKind()) + "/" + object.GetName(),
	}
	if object.GetNamespace() != "" {
		p.Command += " -n " + object.GetNamespace()
	}
	if at.cluster.Name != "" {
		p.Command += " --cluster " + at.cluster.String()
		p.ClusterLink = objectLink("", "", "kubernetesclusters", at.cluster.Namespace, at.cluster.Name)
	}
	conditions, err := conditionsOf(object)
	p.Mark, p.Message = verdict(conditions, false)
	var of error
	p.Sections, of = sections(at.cluster, object)
	p.Sections = append(p.Sections, conditionSection(conditions))
	found, gaps, missing := events.List(ctx, []tree.Member{{ID: idOf(object), Cluster: cluster}})
	p.Sections = append(p.Sections, eventSection(found))
	p.Manifest = manifestOf(object)
	return p, errors.Join(append(gaps, err, of, missing)...)
}

func idOf(object *unstructured.Unstructured) manifest.ID {
	kind := object.GroupVersionKind()
	return manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// manifestOf returns an object as YAML, without the data of Secrets and what only API servers read.
func manifestOf(object *unstructured.Unstructured) string {
	shown := mask.Secret(object).DeepCopy()
	shown.SetManagedFields(nil)
	content, err := yaml.Marshal(shown.Object)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// followObject has a stream wake when the object of its page changes. It returns which that is; nil if the page is about
// kinds.
func (s *server) followObject(r *http.Request, to *stream) (*shown, error) {
	path := strings.Split(strings.TrimPrefix(r.URL.Query().Get("object"), "/objects/"), "/")
	if len(path) != len(objectPath) {
		return nil, nil // the page is about kinds of the inventory
	}
	at := addressOf(func(part string) string { return path[slices.Index(objectPath, part)] })
	cluster, err := viewerOf(r).cluster(r.Context(), at.cluster)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(cluster, at.resource)
	if err != nil {
		return nil, err
	}
	c, err := watcher(cluster)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	f := newFollow(c, object, func() client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}, func(string) { to.tell("", "") })
	f.standing.Namespace, f.selects = at.namespace, fields.OneTermEqualSelector("metadata.name", at.name)
	go func() { _ = f.run(r.Context()) }() // without it, the page is what it was when it was opened
	return &shown{in: cluster, what: authorizationv1.ResourceAttributes{
		Verb: "get", Group: kind.Group, Resource: at.resource, Namespace: at.namespace, Name: at.name,
	}}, nil
}

// shown is the object of a page.
type shown struct {
	in   *fleet.Cluster
	what authorizationv1.ResourceAttributes
}

// objectPath are the parts of the address of an object.
var objectPath = []string{"clusterNamespace", "cluster", "resource", "namespace", "name"}

// branch is an object of a tree.
type branch struct {
	tree.Row
	Mark mark
	Link string
}

// tree shows what became of an object, down to the Pods. It is a page of its own, because reading that may take
// a while.
func (s *server) tree(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readWithin)
	defer cancel()
	at := addressOf(r.PathValue)
	cluster, object, err := get(ctx, viewerOf(r), at)
	if err != nil {
		s.explain(w, r, cluster, at, object != nil, err)
		return
	}
	grown, err := tree.Grow(ctx, cluster, object, 0)
	if err != nil {
		s.explain(w, r, cluster, at, false, err)
		return
	}
	var rows []branch
	for _, row := range grown.Rows() {
		rows = append(rows, branch{Row: row, Mark: healthMark(string(row.Health)), Link: s.linkOf(ctx, viewerOf(r), row)})
	}
	s.show(w, r, "tree", http.StatusOK, page{
		Title: "Tree of " + object.GetName(), Area: areas[object.GetKind()], Object: at.String(), Troubles: grown.Warnings,
		Model: map[string]any{"Object": at.String(), "Name": object.GetName(), "Kind": object.GetKind(), "Rows": rows},
	})
}

// linkOf returns the address of an object of a tree; empty if it has no page.
func (s *server) linkOf(ctx context.Context, v *viewer, row tree.Row) string {
	if row.Group != v1alpha1.Group || row.Name == "" {
		return ""
	}
	resource := strings.ToLower(row.Kind) + "s"
	if strings.HasSuffix(resource, "classs") {
		resource = strings.TrimSuffix(resource, "s") + "es"
	}
	key := row.ClusterKey
	if k := s.inventory.kubernetesCluster(ctx, v, key); k != nil && k.Spec.KubeconfigSecretRef == nil {
		key = types.NamespacedName{} // it is the hub itself
	}
	return objectLink(key.Namespace, key.Name, resource, row.Namespace, row.Name)
}

func healthMark(status string) mark {
	switch status {
	case "Current":
		return markReady
	case "Failed", "NotFound":
		return markFailing
	default:
		return markUnknown
	}
}
