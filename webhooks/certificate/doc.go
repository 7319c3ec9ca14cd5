// Package certificate holds the certificate authority of the webhooks: how it is created, kept in a
// Secret, replaced in time, and used by processes to issue their serving certificates.
//
// All replicas share the authority. Each issues its own certificate, in memory, for the name that
// it is reached by. A new authority is trusted before anything is signed with it, and the previous
// one stays trusted, so that replicas which learn of the change at different times all remain
// trusted. The package is pure: package registration talks to the API server.
package certificate
