// Package placement says where a workload runs: it filters the clusters that could take it,
// scores those that are left and selects the best. It is pure: whoever calls it gathers what
// is known of the clusters, and writes down what was decided.
package placement
