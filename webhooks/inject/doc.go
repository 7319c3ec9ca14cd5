// Package inject marks objects with the Application that they are part of while they are written.
// It handles objects of any kind that some Application lists, in the namespaces where one does.
//
// Every process keeps the Applications of the cluster in memory, trimmed to what membership needs,
// and answers from there; it reads and writes nothing but metadata. The rules of the webhook
// configuration are computed from the same data and written by the holder of the Lease (package
// registration). Package membership decides which Application an object belongs to. Nothing depends
// on an answer: the Application controller fills in what is missed here.
package inject
