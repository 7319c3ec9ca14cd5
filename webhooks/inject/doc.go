// Package inject marks objects as what they are part of while they are written: of any kind that
// some Application lists, in the namespaces where one does (C3, C32, C52).
//
// Every process keeps the Applications of the cluster in memory, trimmed to what membership needs,
// and answers from there; nothing but metadata is read or written. From the same memory follow
// the rules of the webhook configuration, which the holder of the Lease writes (package
// registration). Whose an object is, is for package membership to say. Nothing depends on an
// answer: what is missed here, the Application controller fills in.
package inject
