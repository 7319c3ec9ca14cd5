package registration

import (
	"time"

	"waybill.dev/waybill/webhooks/certificate"
)

// The names of the objects that the processes share in the system namespace.
const (
	// SecretName is the name of the Secret with the certificate authority.
	SecretName = "waybill-webhook-ca"

	// LeaseName is the name of the Lease whose holder fills the webhook configurations.
	LeaseName = "waybill-webhook"
)

// Options of a Registrar.
type Options struct {
	// Namespace of the Secret and the Lease.
	Namespace string

	// Endpoint that is registered with API servers. If it is a URL, the process also creates what a
	// chart creates otherwise: the namespace, the Secret and the configurations.
	Endpoint Endpoint

	// Listen is the host and port that this process listens on; readiness checks connect to it.
	Listen string

	// Hooks to register.
	Hooks Hooks

	// Injections returns what is to be registered in addition to the Hooks, and whether that is
	// known yet. Call Registrar.Wake when it changes. Default: none.
	Injections func() (injections []Injection, known bool)

	// InjectionTimeout is how long an API server waits for an answer about an object that is not of
	// our kinds: after that it continues without one. Whole seconds, up to 30s. Default: 2s.
	InjectionTimeout time.Duration

	// Holder receives the serving certificate.
	Holder *certificate.Holder

	// Validity of a certificate authority, which is replaced after two thirds of it. Default: 1
	// year.
	Validity time.Duration

	// Settle is how long an authority must be registered before anything is signed with it: API
	// servers do not all observe a configuration at the same time. Default: 5s.
	Settle time.Duration

	// Drain is how long, at most, a terminating process goes on answering until API servers call
	// another one. Default: 0s, not at all.
	Drain time.Duration

	// Unregister deletes the configurations when the process ends and no other process has taken
	// over. It only applies to an Endpoint by URL, and is meant for demos and tests, where no
	// process is left to answer.
	Unregister bool

	// Lease durations; see leaderelection.LeaderElectionConfig. Defaults: 10s, 7s, 2s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

func (o *Options) setDefaults() {
	if o.Injections == nil {
		o.Injections = func() ([]Injection, bool) { return nil, true }
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.InjectionTimeout, 2 * time.Second},
		{&o.Validity, 365 * 24 * time.Hour},
		{&o.Settle, 5 * time.Second},
		{&o.LeaseDuration, 10 * time.Second},
		{&o.RenewDeadline, 7 * time.Second},
		{&o.RetryPeriod, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
}
