// Package sourcecredential copies source credentials to where they are needed, and nowhere else: each
// Secret of the hub's system namespace with the annotation apps.waybill.dev/secret-type goes to the system
// namespace of every seed and, if the operator asks for that, to the namespace on the hub of each
// KubernetesCluster that is offered a definition which names it. Nothing goes into a user cluster.
//
// A lane keeps the copies in one API server: that of a seed, or the hub's own. It lists them once, and then
// delivers with sync/apply, so that an edit or a deletion over there is corrected by watch, and a Secret of
// somebody else stays as it is. No lane waits for another one.
//
// Copies are made, changed and deleted when a Secret of the system namespace changes; those in namespaces
// also when a definition changes, and when a KubernetesCluster comes, goes or changes its labels. A
// KubernetesCluster is reconciled when a lane has something else to say about it.
//
// It owns the condition CredentialsCopied of KubernetesCluster.
package sourcecredential
