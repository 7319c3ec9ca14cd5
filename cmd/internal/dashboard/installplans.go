package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/render/values/schema"
)

// installNeeds are the rights to change what an installation installs.
func installNeeds(sub *subject) []need {
	needs := patchOnly(sub)
	inst, err := sub.installation()
	if err != nil {
		return needs
	}
	return append(needs, rightsToInstall(inst)...)
}

// rightsToInstall are those that admission requires for a change of the spec of an installation, as far as it says so itself: an
// account that its definition names is known there.
func rightsToInstall(inst *v1alpha1.ApplicationInstallation) []need {
	var needs []need
	for _, r := range validation.RightsToInstall(inst, inst.Spec.ServiceAccountName) {
		needs = append(needs, r.AnyOf)
	}
	return needs
}

func revisionsOf(sub *subject) []*v1alpha1.InstallationRecord {
	inst, err := sub.installation()
	if err != nil {
		return nil
	}
	return install.Revisions(inst)
}

// workbench is what plans for an installation need.
type workbench struct {
	*install.Session
	inst *v1alpha1.ApplicationInstallation
	// definition is nil where the viewer may not read it.
	definition *v1alpha1.ApplicationDefinition
	// schema of the version that is wanted; nil if it has none. What it marks as secret is hidden, and what the one does that
	// the installation has.
	schema *schema.Schema
	secrecy
}

// bench returns what plans for an installation need. version is the one whose schema counts.
func (s *server) bench(ctx context.Context, at fleet.Place, inst *v1alpha1.ApplicationInstallation, version string) (*workbench, error) {
	engine, err := install.NewSession(at)
	if err != nil {
		return nil, err
	}
	b := &workbench{Session: engine, inst: inst}
	if b.definition, err = engine.Definition(ctx, inst.Spec.ApplicationRef.Name); err != nil {
		at.Warn("What the cluster offers is not known: %s", err)
		b.definition = nil
		return b, nil
	}
	offers := b.definition
	if c, err := at.Hub.Client(); err == nil && b.definition.IsCopy() { // which has neither sources nor schemas
		whole := &v1alpha1.ApplicationDefinition{}
		if c.Get(ctx, keyOf(b.definition), whole) == nil {
			offers = whole
		}
	}
	has := inst.GetVersion(offers)
	b.secrecy = s.secrecyOf(ctx, at, offers, cmp.Or(version, has))
	b.schema = b.first()
	if version != "" && has != "" && !v1alpha1.SameVersion(version, has) && offers.GetVersion(has) != nil {
		b.secrecy = b.with(s.secrecyOf(ctx, at, offers, has))
	}
	return b, nil
}

func (s *server) benchOf(ctx context.Context, sub *subject, version string) (*workbench, error) {
	inst, err := sub.installation()
	if err != nil {
		return nil, err
	}
	return s.bench(ctx, s.placeOf(sub), inst, version)
}

// planUpgrade returns the plan to change the version and the values as the form says.
func planUpgrade(ctx context.Context, s *server, sub *subject, form url.Values) (*plan, error) {
	b, err := s.benchOf(ctx, sub, form.Get("version"))
	if err != nil {
		return nil, err
	}
	after := b.inst.DeepCopy()
	if version := form.Get("version"); version != "" && !v1alpha1.SameVersion(version, b.inst.Spec.ApplicationRef.Version) {
		if err := b.SetVersion(ctx, after, version); err != nil {
			return nil, err
		}
	}
	if form.Has("values") {
		if err := b.edit(after, form.Get("values")); err != nil {
			return nil, err
		}
	}
	if reflect.DeepEqual(b.inst.Spec, after.Spec) {
		return nil, errors.New("nothing would change: it has this version and these values already")
	}
	what := fmt.Sprintf("Version %[2]s of %[1]s is installed, in place of %[3]s.", after.Spec.ApplicationRef.Name, after.Spec.ApplicationRef.Version, b.inst.Spec.ApplicationRef.Version)
	if after.Spec.ApplicationRef.Version == b.inst.Spec.ApplicationRef.Version {
		what = "Its values change; the version stays " + after.Spec.ApplicationRef.Version + "."
	}
	return s.planChange(ctx, b, after, what)
}

// planRollback returns the plan to go back to a revision.
func planRollback(ctx context.Context, s *server, sub *subject, form url.Values) (*plan, error) {
	wanted, err := strconv.ParseInt(form.Get("revision"), 10, 32)
	if err != nil {
		return nil, errors.New("choose a revision")
	}
	b, err := s.benchOf(ctx, sub, "")
	if err != nil {
		return nil, err
	}
	revisions := install.Revisions(b.inst)
	i := slices.IndexFunc(revisions, func(r *v1alpha1.InstallationRecord) bool { return int64(r.Revision) == wanted })
	if i < 0 {
		return nil, fmt.Errorf("there is no revision %d to go back to", wanted)
	}
	after, err := b.RollBack(ctx, b.inst, revisions[i], form.Get("keepValues") == "true")
	if errors.As(err, new(*install.ValuesLostError)) {
		return nil, fmt.Errorf("%w; check \"Keep the values as they are\" to set only the version again", err)
	}
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(b.inst.Spec, after.Spec) {
		return nil, fmt.Errorf("nothing would change: it wants version %s with these values already", revisions[i].Version)
	}
	return s.planChange(ctx, b, after, fmt.Sprintf("It goes back to revision %d: version %s.", wanted, revisions[i].Version))
}

// planChange returns the plan to change the spec of an installation.
func (s *server) planChange(ctx context.Context, b *workbench, after *v1alpha1.ApplicationInstallation, what string) (*plan, error) {
	if err := b.check(after); err != nil {
		return nil, err
	}
	wanted := after.DeepCopy()
	if err := b.Change(ctx, b.inst, after, true); err != nil {
		return nil, err
	}
	p := &plan{What: []string{what}}
	var err error
	if p.Compare, err = s.compareInstallation(ctx, b, b.inst, after); err != nil {
		return nil, err
	}
	if p.Manifest, err = b.manifest(wanted); err != nil {
		return nil, err
	}
	before := b.inst
	p.do = func(ctx context.Context) error { return b.Change(ctx, before, wanted, false) }
	return p, nil
}

// check returns what the schema of the chart says of the values, with the path of each.
func (b *workbench) check(inst *v1alpha1.ApplicationInstallation) error {
	if b.schema == nil {
		return nil
	}
	if faults := b.schema.CheckInstallation(inst); len(faults) > 0 {
		return faults.ToAggregate()
	}
	return nil
}

// manifest returns an installation as people would commit it, with what is secret hidden.
func (b *workbench) manifest(inst *v1alpha1.ApplicationInstallation) (string, error) {
	own, err := install.OwnValues(inst)
	if err != nil {
		return "", err
	}
	if hidden := b.secrecy.values(own); !reflect.DeepEqual(own, hidden) {
		inst = inst.DeepCopy()
		if err := install.SetValues(inst, hidden); err != nil {
			return "", err
		}
	}
	content, err := install.Manifest(inst)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write manifest: %w", err)
	}
	return string(text), nil
}

// compareInstallation returns how an installation changes, and what it installs. What cannot be found out of the latter is
// no error: the comparison says so. before is nil for a new one.
func (s *server) compareInstallation(ctx context.Context, b *workbench, before, after *v1alpha1.ApplicationInstallation) (*comparison, error) {
	was, err := install.Untyped(before)
	if err != nil {
		return nil, err
	}
	is, err := install.Untyped(after)
	if err != nil {
		return nil, err
	}
	hides := s.curtain(ctx, b.Place)
	for _, inst := range []*v1alpha1.ApplicationInstallation{before, after} {
		if inst != nil {
			s.strike(ctx, hides, b.Place, inst)
		}
	}
	shared, err := s.sources.open()
	if err != nil {
		return nil, err
	}
	view := hides.view(b.Place, shared)
	whole, err := view.Installation(ctx, was, is)
	if err != nil {
		first := compared(view.Own(was, is), hides)
		first.Failure = hides.strikes.from(b.Target.Explain(err).Error())
		return first, nil
	}
	itself := func(r diff.Result) bool { return isOf(r, after) }
	if i := slices.IndexFunc(whole.Results, itself); i > 0 { // what is changed comes first
		one := whole.Results[i]
		whole.Results = slices.Insert(slices.Delete(whole.Results, i, i+1), 0, one)
	}
	return compared(whole, hides), nil
}

func isOf(r diff.Result, inst *v1alpha1.ApplicationInstallation) bool {
	return r.Group == v1alpha1.Group && r.Kind == v1alpha1.ApplicationInstallationKind && r.Namespace == inst.Namespace && r.Name == inst.Name
}

// planUninstall returns the plan to delete an installation.
func planUninstall(ctx context.Context, s *server, sub *subject, _ url.Values) (*plan, error) {
	inst, err := sub.installation()
	if err != nil {
		return nil, err
	}
	at := s.placeOf(sub)
	engine, err := install.NewSession(at)
	if err != nil {
		return nil, err
	}
	p := &plan{
		What: consequences(engine.Fate(ctx, inst)),
		do:   func(ctx context.Context) error { return engine.Delete(ctx, inst) },
	}
	p.Compare, err = s.comparedRemoval(ctx, at, sub)
	if err != nil {
		p.Compare = &comparison{Failure: at.Target.Explain(err).Error()}
	}
	return p, nil
}

// uninstallNamed returns what it is called to delete an installation, and what that does: what it has installed may stay.
func uninstallNamed(ctx context.Context, s *server, sub *subject) (title, about string) {
	inst, err := sub.installation()
	if err != nil {
		return "Delete", "Delete it."
	}
	fate := installation.NewLookup(s.placeOf(sub)).Fate(ctx, inst)
	about = strings.Join(consequences(fate), " ")
	switch {
	case fate.Unknown != "":
		return "Delete", about
	case fate.Stays:
		return "Delete and keep what it installed", about
	}
	return "Uninstall", about
}

// consequences says what becomes of what an installation has installed when the installation is deleted.
func consequences(fate installation.Fate) []string {
	switch {
	case fate.Unknown != "":
		return []string{"It is deleted. What it installed stays, as spec.deletionPolicy is Orphan, unless its definition forbids that: " + fate.Unknown + "."}
	case fate.Stays:
		return []string{"It is deleted. What it installed stays, as spec.deletionPolicy is Orphan: nothing looks after that any more."}
	}
	said := []string{"It is deleted, and with it everything that it installed. Claims of StatefulSets and other objects that charts keep stay."}
	if fate.Unheeded != "" {
		said = append(said, fate.Unheeded+".")
	}
	return said
}

func (s *server) comparedRemoval(ctx context.Context, at fleet.Place, sub *subject) (*comparison, error) {
	shared, err := s.sources.open()
	if err != nil {
		return nil, err
	}
	hides := s.curtainOf(ctx, sub)
	found, err := hides.view(at, shared).Uninstall(ctx, sub.object)
	if err != nil {
		return nil, err
	}
	for i := range found.Results {
		found.Results[i].Diff = "" // what is gone is said by its name
	}
	return compared(found, hides), nil
}

// ask shows the form of an action. failed says what is wrong with what was filled in.
func (s *server) ask(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject, a action, form url.Values, failed error) {
	b, err := s.benchOf(ctx, sub, form.Get("version"))
	if err != nil {
		s.refuse(w, r, sub, statusOf(err), a, sub.cluster.Explain(err))
		return
	}
	model := map[string]any{
		"Action": a.title, "About": a.about, "To": sub.at.String() + "/actions/" + a.name, "Problems": problemsOf(sub.cluster, failed),
		"Kustomize": b.definition != nil && b.definition.GetMethod() == v1alpha1.MethodKustomize,
	}
	status := http.StatusOK
	if failed != nil {
		status = formStatus(failed)
	}
	if a.name == "rollback" {
		model["Revisions"], model["Revision"], model["KeepValues"] = install.Revisions(b.inst), form.Get("revision"), form.Get("keepValues") == "true"
		s.showStatusOf(w, r, sub, status, "rollback", a.title, model)
		return
	}
	text, err := b.text(b.inst)
	if err != nil {
		model["Problems"] = append(problemsOf(sub.cluster, failed), err.Error())
	}
	if form.Has("values") {
		text = form.Get("values")
	}
	model["Values"], model["Editor"] = text, editorOf(b.schema)
	model["Versions"], model["Version"] = versionChoices(b.definition), cmp.Or(form.Get("version"), b.inst.Spec.ApplicationRef.Version)
	s.showStatusOf(w, r, sub, status, "upgrade", a.title, model)
}

// formStatus returns the status of a form that is shown again, with what is wrong.
func formStatus(err error) int {
	if status := statusOf(err); status == http.StatusForbidden || status == http.StatusBadGateway {
		return status
	}
	return http.StatusUnprocessableEntity
}

// problemsOf returns what an error says is wrong, a line each, with the paths of fields.
func problemsOf(in *fleet.Cluster, err error) []string {
	if err == nil {
		return nil
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Details != nil && len(answer.Status().Details.Causes) > 0 {
		var said []string
		for _, cause := range answer.Status().Details.Causes {
			text := cause.Message
			if cause.Field != "" {
				text = cause.Field + ": " + text
			}
			said = append(said, text)
		}
		return said
	}
	var several interface{ Errors() []error }
	if errors.As(err, &several) {
		var said []string
		for _, one := range several.Errors() {
			said = append(said, one.Error())
		}
		return said
	}
	return []string{in.Explain(err).Error()}
}
