package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

// maxValueLines is how many values a page lists.
const maxValueLines = 3000

// valueLine is a value, and where it comes from.
type valueLine struct{ Name, Value, From string }

// values shows what an installation is rendered with, and from which layer each value comes.
func (s *server) values(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	model := map[string]any{}
	lines, own, err := s.valuesOf(ctx, sub)
	if err != nil {
		model["Failure"] = sub.cluster.Explain(err).Error()
	}
	model["More"] = max(0, len(lines)-maxValueLines)
	model["Lines"], model["Own"] = lines[:min(len(lines), maxValueLines)], own
	s.showOf(w, r, sub, "values", "Values of", model)
}

// valuesOf returns the values of an installation, and the text that it sets itself. The text is there where the others are
// not known.
func (s *server) valuesOf(ctx context.Context, sub *subject) (lines []valueLine, own string, err error) {
	b, err := s.benchOf(ctx, sub, "")
	if err != nil {
		return nil, "", err
	}
	if own, err = b.text(b.inst); err != nil {
		return nil, "", err
	}
	shared, err := s.sources.open()
	if err != nil {
		return nil, own, err
	}
	merged, err := b.Values(ctx, shared, b.inst)
	if err != nil {
		return nil, own, err
	}
	for _, e := range merged.Explained() {
		e.Value = b.of(e.Value, e.Path())
		lines = append(lines, valueLine{Name: e.Name, Value: e.Text(), From: e.From})
	}
	return lines, own, nil
}

// rendered is an object as it is rendered.
type rendered struct{ Kind, Namespace, Name, File, Text string }

// manifests shows what an installation or a GitSync renders to.
func (s *server) manifests(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	model := map[string]any{}
	hides := s.curtainOf(ctx, sub)
	objects, err := s.renderedOf(ctx, sub)
	if err != nil {
		model["Failure"] = hides.strikes.from(sub.cluster.Explain(err).Error())
	} else {
		all := slices.Concat(objects.CRDs, objects.Objects, objects.Hooks)
		model["More"] = max(0, len(all)-maxCompared)
		var shown []rendered
		for _, o := range all[:min(len(all), maxCompared)] {
			shown = append(shown, renderedAs(o, hides))
		}
		model["Objects"], model["Source"] = shown, objects.Source
		for _, p := range objects.Problems {
			sub.notes.warnf("%s", hides.strikes.from(p.Error()))
		}
		for _, warning := range objects.Warnings {
			sub.notes.warnf("%s", hides.strikes.from(warning))
		}
	}
	s.showOf(w, r, sub, "manifests", "Manifests of", model)
}

func renderedAs(o manifest.Object, hides *curtain) rendered {
	text, err := yaml.Marshal(hides.one(o.Unstructured).Object)
	if err != nil {
		text = []byte(err.Error())
	}
	return rendered{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), File: o.File, Text: string(text)}
}

func (s *server) renderedOf(ctx context.Context, sub *subject) (*installation.Objects, error) {
	shared, err := s.sources.open()
	if err != nil {
		return nil, err
	}
	lookup := installation.NewLookup(s.placeOf(sub))
	switch sub.object.GetKind() {
	case v1alpha1.GitSyncKind:
		gs := &v1alpha1.GitSync{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sub.object.Object, gs); err != nil {
			return nil, err
		}
		return shared.RenderSync(ctx, lookup, gs)
	case v1alpha1.ApplicationInstallationKind:
		inst, err := sub.installation()
		if err != nil {
			return nil, err
		}
		lookup.Unknown = func(why string) { sub.notes.warnf("Facts about the cluster are empty: %s", why) }
		resolved, err := lookup.Resolve(ctx, installation.Wish{Installation: inst})
		if err != nil {
			return nil, err
		}
		options := installation.Options{}
		if err := options.See(sub.cluster); err != nil {
			return nil, err
		}
		return shared.Render(ctx, resolved, options)
	}
	return nil, fmt.Errorf("a %s renders to nothing", sub.object.GetKind())
}

// diff shows how what is wanted differs from what is there.
func (s *server) diff(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	model := map[string]any{}
	hides := s.curtainOf(ctx, sub)
	shared, err := s.sources.open()
	if err == nil {
		var found *diff.Comparison
		if found, err = hides.view(s.placeOf(sub), shared).Object(ctx, sub.object); err == nil {
			model["Compare"] = compared(found, hides)
		}
	}
	if err != nil {
		model["Compare"] = &comparison{Failure: hides.strikes.from(sub.cluster.Explain(err).Error())}
	}
	s.showOf(w, r, sub, "diff", "Differences of", model)
}

// revision is an entry of a timeline.
type revision struct {
	v1alpha1.InstallationRecord
	Mark mark
	When string
	// Back leads to a rollback; empty if there is none to it.
	Back string
	// Current says that it is installed.
	Current bool
}

// revisions shows what was installed when, and the difference between two of them.
func (s *server) revisions(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	inst, err := sub.installation()
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, "It cannot be read", err)
		return
	}
	var shown []revision
	for _, record := range inst.Status.History {
		one := revision{InstallationRecord: record, Mark: outcomeMark(record.Outcome), When: record.FinishedAt.UTC().Format("2006-01-02 15:04 UTC")}
		one.Current = inst.Status.Release != nil && inst.Status.Release.Revision == record.Revision && record.Revision > 0
		if !one.Current && slices.ContainsFunc(install.Revisions(inst), func(r *v1alpha1.InstallationRecord) bool { return r.Revision == record.Revision }) {
			one.Back = fmt.Sprintf("%s/actions/rollback?step=review&revision=%d", sub.at, record.Revision)
		}
		shown = append(shown, one)
	}
	from, to := r.URL.Query().Get("from"), r.URL.Query().Get("to")
	model := map[string]any{"Revisions": shown, "From": from, "To": to, "Link": sub.at.String() + "/revisions"}
	if from != "" && to != "" {
		values, manifests, err := s.between(ctx, sub, inst, from, to)
		if err != nil {
			model["Failure"] = sub.cluster.Explain(err).Error()
		}
		model["ValuesDiff"], model["ManifestsDiff"], model["Compared"] = values, manifests, err == nil
	}
	s.showOf(w, r, sub, "revisions", "Revisions of", model)
}

// outcomeMark says how a revision ended: one that did not become healthy and was rolled back has failed as well.
func outcomeMark(outcome v1alpha1.InstallationOutcome) mark {
	m := markFailing
	if outcome == v1alpha1.InstallationDeployed {
		m = markReady
	}
	m.Words = string(outcome)
	return m
}

// between returns the difference of the values, and of the manifests, of two revisions, from Helm's records.
func (s *server) between(ctx context.Context, sub *subject, inst *v1alpha1.ApplicationInstallation, from, to string) (values, manifests []diffLine, err error) {
	hides := s.curtain(ctx, s.placeOf(sub))
	var had [2]map[string]any
	var rendered [2]string
	secret := hides.version(inst.Spec.ApplicationRef.Name, inst.Spec.ApplicationRef.Version)
	for i, name := range []string{from, to} {
		if had[i], rendered[i], err = recordOf(ctx, sub, inst, name); err != nil {
			return nil, nil, err
		}
		if version := versionOf(inst, name); version != "" {
			secret = secret.with(hides.version(inst.Spec.ApplicationRef.Name, version))
		}
	}
	was, is := secret.pair(had[0], had[1])
	texts := [2]string{}
	for i, shown := range []map[string]any{was, is} {
		secret.secrets(had[i], nil, hides.strikes.add)
		text, err := yaml.Marshal(shown)
		if err != nil {
			return nil, nil, fmt.Errorf("write values: %w", err)
		}
		texts[i] = string(text)
	}
	return unified(texts[0], texts[1], from, to), unified(shownManifests(rendered[0], hides), shownManifests(rendered[1], hides), from, to), nil
}

// versionOf returns the version that a revision installed; empty if the history does not have it any more.
func versionOf(inst *v1alpha1.ApplicationInstallation, revision string) string {
	for _, h := range inst.Status.History {
		if strconv.Itoa(int(h.Revision)) == revision {
			return h.Version
		}
	}
	return ""
}

func recordOf(ctx context.Context, sub *subject, inst *v1alpha1.ApplicationInstallation, name string) (map[string]any, string, error) {
	number, err := strconv.Atoi(name)
	known := inst.Status.Release
	switch {
	case err != nil || number < 1:
		return nil, "", fmt.Errorf("%q is not the number of a revision", name)
	case known == nil:
		return nil, "", errors.New("only Helm records revisions")
	case slices.ContainsFunc(inst.Status.History, func(h v1alpha1.InstallationRecord) bool { return int(h.Revision) == number && h.SecretValues }):
		return nil, "", fmt.Errorf("values of revision %d came from a Secret, and are not shown", number)
	}
	c, err := sub.cluster.Client()
	if err != nil {
		return nil, "", err
	}
	id := release.Identity{Namespace: known.Namespace, Name: known.Name}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: known.Namespace, Name: id.RecordName(number)}, secret); err != nil {
		return nil, "", fmt.Errorf("get Helm's record of revision %d: %w", number, err)
	}
	return release.Recorded(secret, number, known)
}

// shownManifests returns manifests without what is secret. What is no YAML is left out: it may be a Secret.
func shownManifests(manifests string, hides *curtain) string {
	var b strings.Builder
	for document := range strings.SplitSeq(manifests, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil || len(object.Object) == 0 {
			continue
		}
		text, err := yaml.Marshal(hides.one(object).Object)
		if err == nil {
			b.WriteString("---\n" + string(text))
		}
	}
	return b.String()
}

func unified(was, is, from, to string) []diffLine {
	return diffLines(diff.Unified("revision "+from, was, "revision "+to, is), maxDiffLines)
}

// commit shows what the commit says of itself that a GitSync has applied. It is not in the status: the repository is asked,
// with the credentials that the viewer may read.
func (s *server) commit(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	gs := &v1alpha1.GitSync{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sub.object.Object, gs); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "It cannot be read", err)
		return
	}
	model := map[string]any{"URL": gs.Spec.URL, "Applied": gs.Status.Revision, "Attempted": gs.Status.AttemptedRevision, "Link": commitLink(gs.Spec.URL, gs.Status.Revision)}
	shared, err := s.sources.open()
	if err == nil {
		found, failed := shared.CommitOf(ctx, installation.NewLookup(s.placeOf(sub)), gs)
		if err = failed; err == nil {
			model["Author"], model["When"], model["Message"] = found.Author, found.AuthoredAt.UTC().Format("2006-01-02 15:04 UTC"), found.Message
		}
	}
	if err != nil {
		model["Failure"] = sub.cluster.Explain(err).Error()
	}
	s.showOf(w, r, sub, "commit", "Commit of", model)
}
