// Package validation says what is wrong with an object of ours, and what it defaults to,
// without other input: no client, no clock, no file. Admission and the command line share it,
// so that both say the same; reconcilers, which act on what was stored, use single rules of it.
//
// Each ValidateX takes the new object and the object as it is, nil when it is being created, and
// returns every error that it finds, each with the path of its field. The
// shape rules stand in the CRD schemas too; what only Go can say (selectors, Pod
// templates, semantic versions, paths, URLs) stands here alone. Each XWarnings returns what is
// allowed and unwise.
package validation
