package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/delivered"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/reconcile"
	"waybill.dev/waybill/cmd/internal/suspend"
	"waybill.dev/waybill/sync/deliver/apply"
)

// action is something that can be done with an object, by the engine that the command line uses.
type action struct {
	// name in addresses, title on buttons, and what it does, in a sentence.
	name, title, about string
	// fits reports whether there is such an action for an object.
	fits func(*subject) bool
	// named returns another title and what it does where that depends on the object; nil if it does not.
	named func(context.Context, *server, *subject) (title, about string)
	// needs are the rights that it takes, all of them.
	needs func(*subject) []need
	// plan says what would happen, and how it is done. form is what the user has filled in.
	plan func(context.Context, *server, *subject, url.Values) (*plan, error)
	// asks says that there is a form to fill in first.
	asks bool
	// undone says that what delivers the object puts it back.
	undone func(*subject) bool
}

// plan is what an action would do.
type plan struct {
	// What happens, in sentences.
	What []string
	// Compare is how objects would change; nil if they would not.
	Compare *comparison
	// Manifest is what to commit instead; empty if nothing is.
	Manifest string
	// do does it.
	do func(context.Context) error
}

// actions are in the order in which pages show them.
var actions = []action{
	{
		name: "reconcile", title: "Reconcile", about: "Look at it now, rather than when something changes or its interval is over.",
		fits: reconciles, needs: patchOnly, plan: planReconcile,
	},
	{
		name: "suspend", title: "Suspend", about: "Stop the work on it. What runs keeps running.",
		fits:  func(sub *subject) bool { return suspends(sub) && !suspended(sub.object) },
		needs: patchOnly, plan: planSuspend(true), undone: switchUndone,
	},
	{
		name: "resume", title: "Resume", about: "Go on with it.",
		fits:  func(sub *subject) bool { return suspends(sub) && suspended(sub.object) },
		needs: patchOnly, plan: planSuspend(false), undone: switchUndone,
	},
	{
		name: "upgrade", title: "Upgrade", about: "Change its version or its values.",
		fits: isInstallation, needs: installNeeds, plan: planUpgrade, asks: true, undone: always,
	},
	{
		name: "rollback", title: "Roll back", about: "Set the version and the values of an earlier revision again.",
		fits:  func(sub *subject) bool { return isInstallation(sub) && len(revisionsOf(sub)) > 0 },
		needs: installNeeds, plan: planRollback, asks: true, undone: always,
	},
	{
		name: "uninstall",
		fits: isInstallation, named: uninstallNamed, needs: func(sub *subject) []need { return []need{{sub.right("delete")}} }, plan: planUninstall, undone: always,
	},
}

// of returns the action as it is called for an object.
func (a action) of(ctx context.Context, s *server, sub *subject) action {
	if a.named != nil {
		a.title, a.about = a.named(ctx, s, sub)
	}
	return a
}

func actionsFor(sub *subject) []action {
	if sub.object.GetDeletionTimestamp() != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(actions), func(a action) bool { return !a.fits(sub) })
}

func always(*subject) bool { return true }

func isInstallation(sub *subject) bool {
	return sub.object.GetKind() == v1alpha1.ApplicationInstallationKind
}

// reconciles reports whether a controller reconciles objects of the kind, and says in the status which request it has handled.
func reconciles(sub *subject) bool {
	switch sub.object.GetKind() {
	case v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind, v1alpha1.ApplicationDefinitionKind, v1alpha1.KubernetesApplicationKind,
		v1alpha1.KubernetesApplicationResourceKind, v1alpha1.ApplicationInstallationKind, v1alpha1.ApplicationKind, v1alpha1.StatefulApplicationKind:
		return true
	}
	return false
}

func suspends(sub *subject) bool {
	_, ok := suspend.Field(sub.object.GetKind())
	return ok
}

func suspended(object *unstructured.Unstructured) bool {
	_, ok := suspend.Field(object.GetKind())
	return ok && suspend.Suspended(object)
}

// switchUndone reports whether git names the field that suspends: only then it is put back.
func switchUndone(sub *subject) bool {
	field, _ := suspend.Field(sub.object.GetKind())
	return suspend.Named(sub.object, field)
}

func patchOnly(sub *subject) []need { return []need{{sub.right("patch")}} }

func planReconcile(_ context.Context, _ *server, sub *subject, _ url.Values) (*plan, error) {
	return &plan{
		What: []string{
			fmt.Sprintf("Sets the annotation %s, which has waybill-sync look at it now.", v1alpha1.ReconcileAtAnnotation),
			"Nothing else of the object changes. What differs from what is wanted is corrected.",
		},
		do: func(ctx context.Context) error {
			c, err := sub.cluster.Client()
			if err != nil {
				return err
			}
			return reconcile.Request(ctx, c, sub.object.DeepCopy(), reconcile.NewToken())
		},
	}, nil
}

// planSuspend returns the plan to suspend an object, or to resume it.
func planSuspend(value bool) func(context.Context, *server, *subject, url.Values) (*plan, error) {
	return func(ctx context.Context, s *server, sub *subject, _ url.Values) (*plan, error) {
		c, err := sub.cluster.Client()
		if err != nil {
			return nil, err
		}
		after := sub.object.DeepCopy()
		if err := suspend.Set(ctx, c, after, value, true); err != nil {
			return nil, err
		}
		what := map[string]string{
			v1alpha1.GitSyncKind:           "It pulls and applies nothing until it is resumed. What it has delivered stays, and is not corrected.",
			v1alpha1.KubernetesClusterKind: "In the cluster, nothing is installed, upgraded or corrected until it is resumed. What runs there keeps running.",
		}[sub.object.GetKind()]
		if !value {
			what = "What was missed meanwhile is caught up with."
		}
		hides := s.curtain(ctx, s.placeOf(sub))
		return &plan{
			What: []string{what}, Compare: compared(hides.view(s.placeOf(sub), nil).Own(sub.object, after), hides),
			do: func(ctx context.Context) error { return suspend.Set(ctx, c, sub.object.DeepCopy(), value, false) },
		}, nil
	}
}

// action shows what an action would do, and the form to fill in for it.
func (s *server) action(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	a, ok := s.actionOf(ctx, w, r, sub)
	if !ok {
		return
	}
	form := r.URL.Query()
	if a.asks && form.Get("step") == "" {
		s.ask(ctx, w, r, sub, a, form, nil)
		return
	}
	s.review(ctx, w, r, sub, a, form)
}

// act does what the form says: it shows what would happen, or has it happen.
func (s *server) act(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read", err)
		return
	}
	a, ok := s.actionOf(ctx, w, r, sub)
	if !ok {
		return
	}
	form := r.PostForm
	if form.Get("step") != "apply" {
		s.review(ctx, w, r, sub, a, form)
		return
	}
	if why := staleness(sub, form); why != "" {
		s.refuse(w, r, sub, http.StatusConflict, a, errors.New(why))
		return
	}
	if owner := s.ownerOf(sub, a); owner != nil && form.Get("force") != "true" {
		s.refuse(w, r, sub, http.StatusConflict, a, fmt.Errorf("%s: nothing was done, as the box that says so was not checked", owner.Text))
		return
	}
	p, err := a.plan(ctx, s, sub, form)
	if err == nil {
		err = p.do(ctx)
	}
	if err != nil {
		s.refuse(w, r, sub, statusOf(err), a, sub.cluster.Explain(err))
		return
	}
	http.Redirect(w, r, sub.at.String()+"?done="+a.name, http.StatusSeeOther)
}

// actionOf returns the action that a request names, if there is such a one for the object and the viewer has the rights for
// it. Else it says so.
func (s *server) actionOf(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) (action, bool) {
	fitting := actionsFor(sub)
	i := slices.IndexFunc(fitting, func(a action) bool { return a.name == r.PathValue("action") })
	if i < 0 {
		err := fmt.Errorf("%s %s has no action %q as it is now", sub.object.GetKind(), sub.object.GetName(), r.PathValue("action"))
		s.fail(w, r, http.StatusNotFound, "There is no such action", err)
		return action{}, false
	}
	a := fitting[i].of(ctx, s, sub)
	if missing := sub.missing(ctx, a.needs(sub)); len(missing) > 0 {
		s.showStatusOf(w, r, sub, http.StatusForbidden, "refused", a.title, map[string]any{"Action": a.title, "Missing": missing, "Rights": sub.at.String() + "/rights"})
		return action{}, false
	}
	return a, true
}

// staleness says that the object is not what was shown when the form was made; empty if it is.
func staleness(sub *subject, form url.Values) string {
	if form.Get("uid") != string(sub.object.GetUID()) || form.Get("generation") != strconv.FormatInt(sub.object.GetGeneration(), 10) {
		return "it was modified since the page was shown, and nothing was done: look at what would happen now"
	}
	return ""
}

// review shows what an action would do, and asks whether it is to be done.
func (s *server) review(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject, a action, form url.Values) {
	p, err := a.plan(ctx, s, sub, form)
	if err != nil && a.asks {
		s.ask(ctx, w, r, sub, a, form, err)
		return
	}
	if err != nil {
		s.refuse(w, r, sub, statusOf(err), a, sub.cluster.Explain(err))
		return
	}
	owner := s.ownerOf(sub, a)
	if owner != nil {
		owner.find(ctx, s, sub)
	}
	s.showStatusOf(w, r, sub, http.StatusOK, "confirm", a.title, map[string]any{
		"Action": a, "Name": a.name, "Title": a.title, "Plan": p, "Owner": owner, "Fields": fieldsOf(form), "To": sub.at.String() + "/actions/" + a.name,
		"UID": string(sub.object.GetUID()), "Generation": sub.object.GetGeneration(),
	})
}

// formField is what a form repeats so that it is sent again.
type formField struct{ Name, Value string }

// fieldsOf returns what the user has filled in, to be sent again when it is confirmed.
func fieldsOf(form url.Values) []formField {
	var fields []formField
	for _, name := range []string{"version", "values", "revision", "keepValues"} {
		for _, value := range form[name] {
			fields = append(fields, formField{name, value})
		}
	}
	return fields
}

// refuse says why an action was not done.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, sub *subject, status int, a action, err error) {
	s.showStatusOf(w, r, sub, status, "refused", a.title, map[string]any{
		"Action": a.title, "Missing": []string{err.Error()}, "Rights": sub.at.String() + "/rights", "Again": sub.at.String() + "/actions/" + a.name,
	})
}

// statusOf returns the status of an answer that has an error.
func statusOf(err error) int {
	switch {
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case apierrors.IsConflict(err):
		return http.StatusConflict
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return http.StatusUnprocessableEntity
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	case unanswered(err):
		return http.StatusBadGateway
	}
	return http.StatusUnprocessableEntity
}

// owner is what delivers an object, and puts back what an action changes.
type owner struct {
	Text string
	// Where says what to change instead, with a link if there is one.
	Where, Link string

	of apply.Owner
}

// ownerOf returns what delivers an object and would undo an action; nil if nothing does.
func (s *server) ownerOf(sub *subject, a action) *owner {
	of, owned := apply.OwnerOf(sub.object)
	if !owned || a.undone == nil || !a.undone(sub) {
		return nil
	}
	what := s.placeOf(sub).Describe(sub.object.GetKind(), sub.object.GetNamespace(), sub.object.GetName())
	return &owner{Text: delivered.Describe(what, of), of: of}
}

// find looks for the file that the object is delivered from.
func (o *owner) find(ctx context.Context, s *server, sub *subject) {
	open := func() (*installation.Sources, func(), error) {
		shared, err := s.sources.open()
		return shared, func() {}, err
	}
	found := delivered.Find(ctx, s.placeOf(sub), client.Object(sub.object), o.of, open)
	o.Where = found.String()
	if found.Sync != nil && found.File != "" {
		o.Link = fileLink(found.Sync.Spec.URL, found.Sync.Status.AttemptedRevision, found.File, 0)
	}
}
