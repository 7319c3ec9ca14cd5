package registration

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/webhooks/certificate"
)

// state holds the two configurations as observed.
type state struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration   // nil if there is none
	validating *admissionregistrationv1.ValidatingWebhookConfiguration // nil if there is none
}

// clients returns the addresses and bundles of all entries.
func (s state) clients() []admissionregistrationv1.WebhookClientConfig {
	var configs []admissionregistrationv1.WebhookClientConfig
	if s.mutating != nil {
		for i := range s.mutating.Webhooks {
			configs = append(configs, s.mutating.Webhooks[i].ClientConfig)
		}
	}
	if s.validating != nil {
		for i := range s.validating.Webhooks {
			configs = append(configs, s.validating.Webhooks[i].ClientConfig)
		}
	}
	return configs
}

// names reports whether every hook is registered at the endpoint.
func (s state) names(e Endpoint, hooks Hooks) bool {
	configs := s.clients()
	for i := range configs {
		configs[i].CABundle = nil
	}
	for _, hook := range slices.Concat(hooks.Mutating, hooks.Validating) {
		want := e.clientConfig(hook.Path, nil)
		if !slices.ContainsFunc(configs, func(c admissionregistrationv1.WebhookClientConfig) bool {
			return apiequality.Semantic.DeepEqual(c, want)
		}) {
			return false
		}
	}
	return true
}

// mentions reports whether any hook is registered at the endpoint.
func (s state) mentions(e Endpoint, hooks Hooks) bool {
	return slices.ContainsFunc(slices.Concat(hooks.Mutating, hooks.Validating), func(hook Hook) bool {
		return s.names(e, Hooks{Validating: []Hook{hook}})
	})
}

// bundle returns the bundle that all entries trust, or nil if they differ; the configurations are
// always written with one.
func (s state) bundle() []byte {
	configs := s.clients()
	if len(configs) == 0 {
		return nil
	}
	for _, c := range configs[1:] {
		if !bytes.Equal(c.CABundle, configs[0].CABundle) {
			return nil
		}
	}
	return configs[0].CABundle
}

// trust remembers since when an authority has been in the registered bundle.
type trust struct {
	authority *certificate.Authority
	since     time.Time
}

// never is later than any time that is waited for.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// see notes whether the bundle holds the authority. If nothing is registered, any authority counts
// as trusted.
func (t *trust) see(now time.Time, a *certificate.Authority, s state) {
	if a == nil || (len(s.clients()) > 0 && !certificate.Contains(s.bundle(), a)) {
		*t = trust{}
		return
	}
	if t.authority == nil || !bytes.Equal(t.authority.PEM(), a.PEM()) {
		*t = trust{authority: a, since: now}
	}
}

// settles returns when the authority may sign: never, as long as it is not registered.
func (t *trust) settles(a *certificate.Authority, settle time.Duration) time.Time {
	if t.authority == nil || a == nil || !bytes.Equal(t.authority.PEM(), a.PEM()) {
		return never
	}
	return t.since.Add(settle)
}

// observe reads both configurations.
func (r *Registrar) observe(ctx context.Context) error {
	var s state
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	switch err := r.client.Get(ctx, client.ObjectKey{Name: ConfigurationName}, mutating); {
	case err == nil:
		s.mutating = mutating
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get mutating webhook configuration %s: %w", ConfigurationName, err)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	switch err := r.client.Get(ctx, client.ObjectKey{Name: ConfigurationName}, validating); {
	case err == nil:
		s.validating = validating
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get validating webhook configuration %s: %w", ConfigurationName, err)
	}
	r.saw(s)
	return nil
}

// observation is what was observed, until another one.
type observation struct {
	state state
	// outdated is closed by the next one.
	outdated chan struct{}
}

// saw replaces what was observed.
func (r *Registrar) saw(s state) {
	if before := r.observed.Swap(&observation{state: s, outdated: make(chan struct{})}); before != nil {
		close(before.outdated)
	}
}

// current returns what was observed last, and a channel that is closed at the next observation.
func (r *Registrar) current() (state, <-chan struct{}) {
	if seen := r.observed.Load(); seen != nil {
		return seen.state, seen.outdated
	}
	return state{}, nil
}

// register writes the configurations if they differ from what they should be.
func (r *Registrar) register(ctx context.Context, now time.Time, bundle []byte) error {
	s, _ := r.current()
	e, hooks := r.options.Endpoint, r.options.Hooks
	mutating := s.mutating
	if mutating == nil {
		mutating = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: configurationMeta()}
	}
	if want := hooks.mutating(e, bundle, r.injections(s), r.options.InjectionTimeout); !apiequality.Semantic.DeepEqual(mutating.Webhooks, want) {
		mutating = mutating.DeepCopy()
		mutating.Webhooks = want
		if err := r.correct(ctx, now, &r.mutating, mutating, want); err != nil {
			return fmt.Errorf("write mutating webhook configuration %s: %w", ConfigurationName, err)
		}
	}
	validating := s.validating
	if validating == nil {
		validating = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: configurationMeta()}
	}
	if want := hooks.validating(e, bundle); !apiequality.Semantic.DeepEqual(validating.Webhooks, want) {
		validating = validating.DeepCopy()
		validating.Webhooks = want
		if err := r.correct(ctx, now, &r.validating, validating, want); err != nil {
			return fmt.Errorf("write validating webhook configuration %s: %w", ConfigurationName, err)
		}
	}
	return nil
}

// injections returns what is to be registered, or what is registered now while that is not known.
func (r *Registrar) injections(s state) []Injection {
	if wanted, known := r.options.Injections(); known {
		return wanted
	}
	return injections(s.mutating)
}

// correct writes a configuration that is not what it should be, unless that was written a moment ago
// and another client keeps changing it: see written.
func (r *Registrar) correct(ctx context.Context, now time.Time, w *written, configuration client.Object, want any) error {
	again := w.holds(want)
	if again && now.Before(w.due) {
		return nil
	}
	if again && w.disputed(now) {
		r.reportDispute(ctx, configuration)
	}
	// What is stored is decoded into the copy, and may have been changed already.
	if err := r.write(ctx, configuration.DeepCopyObject().(client.Object)); err != nil {
		return err
	}
	w.note(now, want)
	return nil
}

// reportDispute logs who else writes a configuration.
func (r *Registrar) reportDispute(ctx context.Context, configuration client.Object) {
	kind := fmt.Sprintf("%T", configuration)
	live := configuration.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(configuration), live); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "another field manager keeps changing a webhook configuration, and cannot be identified", "type", kind)
		return
	}
	ctrl.LoggerFrom(ctx).Info("another field manager keeps changing a webhook configuration; corrections back off",
		"type", kind, "name", live.GetName(), "lastWrittenBy", lastWriter(live))
}

// write creates configurations only outside a cluster: those that a chart created and that were
// then deleted must not come back and block.
func (r *Registrar) write(ctx context.Context, configuration client.Object) error {
	log := ctrl.LoggerFrom(ctx).WithValues("endpoint", r.options.Endpoint.String())
	if configuration.GetResourceVersion() != "" {
		log.Info("fill webhook configuration", "type", fmt.Sprintf("%T", configuration))
		return r.client.Update(ctx, configuration, client.FieldOwner(fieldOwner))
	}
	if !r.options.Endpoint.ByURL() {
		return fmt.Errorf("it does not exist: install the chart again")
	}
	log.Info("make webhook configuration", "type", fmt.Sprintf("%T", configuration))
	return r.client.Create(ctx, configuration, client.FieldOwner(fieldOwner))
}

// configurationMeta returns what the chart gives them. The admission enforcer of AKS would otherwise
// add to their selectors whenever they are written.
func configurationMeta() metav1.ObjectMeta {
	l := labels()
	l["admissions.enforcer/disabled"] = "true"
	return metav1.ObjectMeta{Name: ConfigurationName, Labels: l}
}
