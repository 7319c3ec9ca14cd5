// Package validate is the verb `validate`: the rules of the CustomResourceDefinitions and of
// the webhook, without a cluster.
package validate
