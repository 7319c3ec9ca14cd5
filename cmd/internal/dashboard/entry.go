package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/install"
)

// entryVersion is a version on the page of an entry of the catalog.
type entryVersion struct {
	install.OfferedVersion
	Users []entryUser
	More  int32
	// Install leads to the form.
	Install string
}

// entryUser is an installation that uses a version.
type entryUser struct{ Name, Link string }

// definitionOf returns a definition that the viewer may see, from memory; nil if there is none.
func (s *server) definitionOf(r *http.Request) *v1alpha1.ApplicationDefinition {
	found, _, _ := s.inventory.definitions.informer.GetStore().GetByKey(r.PathValue("definition")) // a key cannot be wrong
	definition, _ := found.(*v1alpha1.ApplicationDefinition)
	if definition == nil || s.inventory.definitions.stands().State == forbidden || !viewerOf(r).sees(r.Context(), s.inventory.definitions, "") {
		return nil
	}
	return definition
}

func (s *server) noDefinition(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, http.StatusNotFound, "There is no ApplicationDefinition "+r.PathValue("definition"),
		errors.New("the catalog has none of that name, or you may not read it"))
}

// entry shows a definition: its versions, and who uses which.
func (s *server) entry(w http.ResponseWriter, r *http.Request) {
	definition := s.definitionOf(r)
	if definition == nil {
		s.noDefinition(w, r)
		return
	}
	link := "/catalog/" + url.PathEscape(definition.Name)
	var versions []entryVersion
	for _, v := range install.Versions(definition, definition.Status.UsedBy) {
		one := entryVersion{OfferedVersion: v, More: v.Count - int32(len(v.Installations)), Install: link + "/install?version=" + url.QueryEscape(v.Version)}
		for _, user := range v.Installations {
			one.Users = append(one.Users, entryUserOf(user))
		}
		versions = append(versions, one)
	}
	s.show(w, r, "entry", http.StatusOK, page{
		Title: definition.Name, Area: "catalog", Kinds: []string{v1alpha1.ApplicationDefinitionKind},
		Model: map[string]any{
			"Entry": newEntry(definition), "Versions": versions, "Install": link + "/install", "Requires": definition.Spec.Requires,
			"Object": objectLink("", "", "applicationdefinitions", "", definition.Name),
		},
	})
}

// entryUserOf reads CLUSTER-NAMESPACE/CLUSTER/NAMESPACE/NAME, or NAMESPACE/NAME of the hub.
func entryUserOf(name string) entryUser {
	parts := strings.Split(name, "/")
	switch len(parts) {
	case 4:
		return entryUser{name, objectLink(parts[0], parts[1], "applicationinstallations", parts[2], parts[3])}
	case 2:
		return entryUser{name, objectLink("", "", "applicationinstallations", parts[0], parts[1])}
	}
	return entryUser{Name: name}
}

// installForm is what a form to install something has.
type installForm struct {
	Version, Cluster, Namespace, Name, Target, Account, Values string
	CreateTarget, Requirements                                 bool
}

func installFormOf(form url.Values) installForm {
	value := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	return installForm{
		Version: value("version"), Cluster: value("cluster"), Namespace: value("namespace"), Name: value("name"), Target: value("target"),
		Account: value("account"), Values: form.Get("values"), CreateTarget: form.Get("createTarget") == "true", Requirements: form.Get("requirements") == "true",
	}
}

// fields returns what was filled in, to be sent again when it is confirmed.
func (f installForm) fields() []formField {
	fields := []formField{
		{"version", f.Version}, {"cluster", f.Cluster}, {"namespace", f.Namespace}, {"name", f.Name}, {"target", f.Target}, {"account", f.Account}, {"values", f.Values},
	}
	for name, set := range map[string]bool{"createTarget": f.CreateTarget, "requirements": f.Requirements} {
		if set {
			fields = append(fields, formField{name, "true"})
		}
	}
	return fields
}

// key returns which cluster is meant; zero for the hub.
func (f installForm) key() types.NamespacedName {
	namespace, name, found := strings.Cut(f.Cluster, "/")
	if !found {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// installation returns what the form asks for, without values.
func (f installForm) installation(definition string) *v1alpha1.ApplicationInstallation {
	inst := &v1alpha1.ApplicationInstallation{}
	inst.Namespace, inst.Name = f.Namespace, f.Name
	inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: definition, Version: f.Version}
	inst.Spec.ServiceAccountName = f.Account
	if f.Target != "" {
		inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: f.Target, Create: f.CreateTarget}
	}
	return inst
}

// install shows the form to install a definition, what would be created, or creates it.
func (s *server) install(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readWithin)
	defer cancel()
	definition := s.definitionOf(r)
	if definition == nil {
		s.noDefinition(w, r)
		return
	}
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read", err)
		return
	}
	form := installFormOf(r.Form)
	step := r.PostForm.Get("step")
	if r.Method != http.MethodPost || step == "edit" {
		form.Version = cmp.Or(form.Version, definition.Spec.DefaultVersion)
		form.Name = cmp.Or(form.Name, definition.Name)
		s.askInstall(ctx, w, r, definition, form, http.StatusOK, nil)
		return
	}
	n := &notes{}
	wanted, err := s.wanted(ctx, viewerOf(r), n, definition, form)
	if err != nil {
		s.askInstall(ctx, w, r, definition, form, formStatus(err), problemsOf(viewerOf(r).hub, err))
		return
	}
	if step == "apply" {
		err = wanted.create(ctx)
		if err == nil {
			key := form.key()
			http.Redirect(w, r, objectLink(key.Namespace, key.Name, "applicationinstallations", form.Namespace, form.Name)+"?done=install", http.StatusSeeOther)
			return
		}
	} else {
		err = s.reviewInstall(ctx, w, r, definition, form, wanted, n)
	}
	if err != nil {
		s.askInstall(ctx, w, r, definition, form, formStatus(err), append(wanted.lacks(ctx), problemsOf(wanted.at.Target, err)...))
	}
}

// wish is what a form asks to install, in order: what it requires comes first.
type wish struct {
	at     fleet.Place
	viewer *viewer
	bench  *workbench
	all    []*v1alpha1.ApplicationInstallation
}

// wanted returns what a form asks to install.
func (s *server) wanted(ctx context.Context, v *viewer, n *notes, definition *v1alpha1.ApplicationDefinition, form installForm) (*wish, error) {
	for _, required := range [][2]string{{form.Namespace, "Namespace"}, {form.Name, "Name"}} {
		if required[0] == "" {
			return nil, fmt.Errorf("%s: fill it in", required[1])
		}
	}
	cluster, err := v.cluster(ctx, form.key())
	if err != nil {
		return nil, err
	}
	inst := form.installation(definition.Name)
	at := s.place(v, cluster, n)
	b, err := s.bench(ctx, at, inst, form.Version)
	if err != nil {
		return nil, err
	}
	if b.definition != nil {
		version, err := b.Offered(b.definition, form.Version)
		if err != nil {
			return nil, err
		}
		inst.Spec.ApplicationRef.Version = version.Version
	}
	if err := b.edit(inst, form.Values); err != nil {
		return nil, err
	}
	if err := b.check(inst); err != nil {
		return nil, err
	}
	wanted := &wish{at: at, viewer: v, bench: b, all: []*v1alpha1.ApplicationInstallation{inst}}
	if b.definition == nil {
		return wanted, nil
	}
	if missing := b.Missing(ctx, b.definition); len(missing) > 0 && !form.Requirements {
		n.warnf("%s requires %s, which the cluster has not.", definition.Name, strings.Join(missing, ", "))
	}
	if form.Requirements {
		required, err := b.Requirements(ctx, inst, b.definition)
		if err != nil {
			return nil, err
		}
		wanted.all = append(required, inst)
	}
	return wanted, nil
}

// create creates everything, in order.
func (w *wish) create(ctx context.Context) error {
	for _, inst := range w.all {
		if err := w.bench.Create(ctx, inst.DeepCopy(), false); err != nil {
			return err
		}
	}
	return nil
}

// lacks says which rights the viewer lacks to create what is wanted.
func (w *wish) lacks(ctx context.Context) []string {
	sub := &subject{viewer: w.viewer, cluster: w.at.Target}
	inst := w.all[len(w.all)-1]
	create := need{{Verb: "create", Group: v1alpha1.Group, Resource: "applicationinstallations", Namespace: inst.Namespace}}
	return sub.missing(ctx, append([]need{create}, rightsToInstall(inst)...))
}

// reviewInstall shows what would be created.
func (s *server) reviewInstall(ctx context.Context, w http.ResponseWriter, r *http.Request, definition *v1alpha1.ApplicationDefinition, form installForm, wanted *wish, n *notes) error {
	whole := &comparison{}
	var manifests []string
	for _, inst := range wanted.all {
		text, err := wanted.bench.manifest(inst)
		if err != nil {
			return err
		}
		manifests = append(manifests, text)
		stored := inst.DeepCopy()
		if err := wanted.bench.Create(ctx, stored, true); err != nil {
			return err
		}
		one, err := s.compareInstallation(ctx, wanted.bench, nil, stored)
		if err != nil {
			return err
		}
		whole.Objects = append(whole.Objects, one.Objects...)
		whole.Summary, whole.Omitted, whole.More = one.Summary, whole.Omitted+one.Omitted, whole.More+one.More
		whole.Failure = cmp.Or(whole.Failure, one.Failure)
	}
	s.show(w, r, "confirminstall", http.StatusOK, page{
		Title: "Install " + definition.Name, Area: "catalog", Troubles: n.all(),
		Model: map[string]any{
			"Title": cmp.Or(definition.Spec.DisplayName, definition.Name), "Where": wanted.bench.NameOf(wanted.all[len(wanted.all)-1]), "Compare": whole,
			"Manifest": strings.Join(manifests, "---\n"), "Fields": form.fields(), "To": r.URL.Path, "Places": s.placesToCommit(r, form.key()),
		},
	})
	return nil
}

// committing is a GitSync that something can be committed for.
type committing struct{ Name, Link, Folder, URL, Web string }

// placesToCommit returns the GitSyncs that the viewer may see and that deliver to a cluster: for who would rather commit
// what they install.
func (s *server) placesToCommit(r *http.Request, cluster types.NamespacedName) []committing {
	const most = 10
	var found []committing
	k := s.inventory.kubernetesCluster(r.Context(), viewerOf(r), cluster)
	for _, g := range visible[*v1alpha1.GitSync](r.Context(), viewerOf(r), s.inventory.syncs) {
		if !deliversTo(g, k) || len(found) == most {
			continue
		}
		folder := strings.Trim(g.Spec.Path, "./")
		web, _ := forgeOf(g.Spec.URL)
		found = append(found, committing{
			Name: g.Namespace + "/" + g.Name, Link: objectLink("", "", "gitsyncs", g.Namespace, g.Name), Folder: folder, URL: g.Spec.URL, Web: web,
		})
	}
	return found
}

// deliversTo reports whether a GitSync delivers to a cluster; nil for the hub.
func deliversTo(g *v1alpha1.GitSync, k *v1alpha1.KubernetesCluster) bool {
	if g.Spec.ClusterSelector == nil {
		return k == nil || k.Spec.KubeconfigSecretRef == nil
	}
	return k != nil && g.Namespace == k.Namespace && slices.ContainsFunc(g.Status.Clusters, func(c v1alpha1.GitSyncClusterStatus) bool { return c.Name == k.Name })
}

// clusterChoice is a cluster to choose.
type clusterChoice struct{ Value, Name string }

// askInstall shows the form to install a definition, with what is wrong with what was filled in.
func (s *server) askInstall(ctx context.Context, w http.ResponseWriter, r *http.Request, definition *v1alpha1.ApplicationDefinition, form installForm, status int, problems []string) {
	n := &notes{}
	v := viewerOf(r)
	choices := []clusterChoice{{"", "the hub itself"}}
	for _, k := range visible[*v1alpha1.KubernetesCluster](ctx, v, s.inventory.clusters) {
		if k.Spec.KubeconfigSecretRef != nil && !k.IsSeed() {
			choices = append(choices, clusterChoice{k.Namespace + "/" + k.Name, k.Name + " (" + k.Namespace + ")"})
		}
	}
	known := s.secrecyOf(ctx, s.place(v, v.hub, n), definition, form.Version)
	s.show(w, r, "install", status, page{
		Title: "Install " + definition.Name, Area: "catalog", Troubles: n.all(),
		Model: map[string]any{
			"Title": cmp.Or(definition.Spec.DisplayName, definition.Name), "Entry": "/catalog/" + url.PathEscape(definition.Name), "To": r.URL.Path, "Form": form,
			"Versions": versionChoices(definition), "Clusters": choices, "Problems": problems, "Editor": editorOf(known.first()), "Values": form.Values,
			"Requires": len(definition.Spec.Requires) > 0, "Kustomize": definition.GetMethod() == v1alpha1.MethodKustomize,
		},
	})
}
