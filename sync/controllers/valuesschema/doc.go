// Package valuesschema learns the schemas of the values of the charts in the catalog, so that admission
// can check the values of an installation without a request to any source.
//
// For each version whose source is a Helm repository, a registry, or a commit of a git repository, the chart
// is fetched once, in a job, through the caches that installations use. Its schema, and those of its subcharts, go into a ConfigMap of
// the system namespace, one for each definition, and their digests into the status of the definition. A
// chart at a branch or a tag is left out: those may move, and admission would refuse what has become right.
//
// A source that cannot be read is asked again after a back-off; until then the values of that version are
// checked when the chart is rendered, as those of every version are in any case.
//
// A definition is reconciled when its spec changes, when a Secret changes that its sources name, and when a job ends. What is
// asked about a version that it does not have any more is dropped. The controller owns
// status.valuesSchemas, and no condition.
package valuesschema
