// Package placement decides where a workload runs: it filters the clusters that could take it,
// scores the remaining ones and selects the best. It is pure: the caller gathers the facts about
// the clusters, and records the decision.
package placement
