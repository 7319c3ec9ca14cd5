package placement

import (
	"fmt"
	"slices"
	"strings"
)

// shown is how many clusters a FitError's text names.
const shown = 20

// Misfit is why one cluster cannot take a workload.
type Misfit struct {
	// Cluster by name.
	Cluster string
	// Reason in a word.
	Reason Reason
	// Message for people, without the name of the cluster.
	Message string
}

// FitError says of every candidate why it cannot take a workload.
type FitError struct {
	// Clusters, sorted by name; empty where there was no candidate.
	Clusters []Misfit
}

// Error names the clusters that the selector matches, at most 20, with what is against each,
// and counts the rest. It is the same for the same findings.
func (e *FitError) Error() string {
	var selected []string
	for _, c := range e.Clusters {
		if c.Reason != NotSelected {
			selected = append(selected, fmt.Sprintf("cluster %s: %s", c.Cluster, c.Message))
		}
	}
	others := len(e.Clusters) - len(selected)
	switch {
	case len(e.Clusters) == 0:
		return "there is no cluster"
	case len(selected) == 0:
		return fmt.Sprintf("none of %d clusters has labels that match the selector", others)
	case len(selected) > shown:
		selected = append(selected[:shown], fmt.Sprintf("and %d more", len(selected)-shown))
	}
	text := "no cluster fits: " + strings.Join(selected, "; ")
	if others > 0 {
		text += fmt.Sprintf("; labels of %d others do not match the selector", others)
	}
	return text
}

// Has says whether a reason is against any of the clusters.
func (e *FitError) Has(reason Reason) bool {
	return slices.ContainsFunc(e.Clusters, func(c Misfit) bool { return c.Reason == reason })
}
