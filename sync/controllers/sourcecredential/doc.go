// Package sourcecredential copies source credentials to where they are needed, and nowhere else: each
// Secret of the hub's system namespace with the annotation apps.waybill.dev/secret-type goes to the system
// namespace of every seed and, if the operator asks for that, to the namespace on the hub of each
// KubernetesCluster that is offered a definition which names it. Nothing goes into a user cluster.
//
// A copier keeps the copies in one API server, that of a seed or the hub's own, with a pool of workers. It
// lists them once, and then delivers with sync/deliver/apply, so that an edit or a deletion over there is corrected
// by watch, and a Secret of another owner stays as it is. No copier waits for another one.
//
// Copies are made, changed and deleted when a Secret of the system namespace changes; those in namespaces
// also when a definition changes, and when a KubernetesCluster comes, goes or changes its labels. A
// KubernetesCluster is reconciled when something else becomes of its copies.
//
// It owns the condition CredentialsCopied of KubernetesCluster.
package sourcecredential
