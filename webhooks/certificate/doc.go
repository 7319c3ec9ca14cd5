// Package certificate holds the certificate authority of the webhooks: how it is made, kept in
// a Secret, replaced in time, and how processes issue their serving certificates from it.
//
// All replicas share the authority and each issues a certificate of its own, in memory, for the
// name that it is reached by. A new authority is trusted before anything is signed with it, and
// the one before stays trusted, so that replicas which learn of it at different times all go on
// being believed. The package is pure: package registration talks to the API server.
package certificate
