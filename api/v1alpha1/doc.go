// Package v1alpha1 contains the API types of Waybill: what users and platform teams write, and what
// they read back.
//
// The package depends only on apimachinery and the apiextensions types, so that any Go program can
// import it without controller-runtime.
//
// +kubebuilder:object:generate=true
// +groupName=apps.waybill.dev
package v1alpha1
