// Package v1alpha1 holds the kinds of Waybill: what users and platform teams
// write, and what they read back.
//
// The package depends on apimachinery and the apiextensions types alone, so that
// any Go program can import it without a controller runtime.
//
// +kubebuilder:object:generate=true
// +groupName=apps.waybill.dev
package v1alpha1
