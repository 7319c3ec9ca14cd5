// Package validate implements the command `validate`: it checks the rules of the
// CustomResourceDefinitions and of the webhook, without a cluster.
package validate
