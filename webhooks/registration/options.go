package registration

import (
	"time"

	"waybill.dev/waybill/webhooks/certificate"
)

// The names of what the processes share in the system namespace.
const (
	// SecretName is that of the Secret with the certificate authority.
	SecretName = "waybill-webhook-ca"

	// LeaseName is that of the Lease whose holder fills the webhook configurations.
	LeaseName = "waybill-webhook"
)

// Options of a Registrar.
type Options struct {
	// Namespace of the Secret and the Lease.
	Namespace string

	// Endpoint that API servers are told. By URL, the process also makes what a chart makes
	// otherwise: the namespace, the Secret and the configurations.
	Endpoint Endpoint

	// Listen is the host and port that this process listens at; readiness asks there.
	Listen string

	// Hooks to register.
	Hooks Hooks

	// Injections are what is to be registered beside the Hooks, and whether that is known yet.
	// Call Registrar.Wake when it changes. Default: none.
	Injections func() (injections []Injection, known bool)

	// Holder is given the serving certificate.
	Holder *certificate.Holder

	// Validity of a certificate authority. It is replaced after two thirds of it. Default: 1 year.
	Validity time.Duration

	// Settle is how long an authority is registered before anything is signed with it: API
	// servers learn of a configuration one after the other. Default: 5s.
	Settle time.Duration

	// Drain is how long a process that is told to end goes on answering, at most: until API
	// servers ask another one. Default: 0s, not at all.
	Drain time.Duration

	// Unregister takes the webhooks out of the configurations when the process ends and nobody
	// has taken over. Only by URL; for demos and tests, where nobody is left to answer.
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
