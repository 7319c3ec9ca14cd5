package placement

import (
	"fmt"
	"slices"
	"strings"
)

// shown is how many clusters the text of a FitError names.
const shown = 20

// Misfit is why one cluster cannot take a workload.
type Misfit struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Reason is the reason in one word.
	Reason Reason
	// Message is for people and does not include the name of the cluster.
	Message string
}

// FitError has the reason of every candidate that cannot take a workload.
type FitError struct {
	// Clusters, sorted by name; empty if there was no candidate.
	Clusters []Misfit
}

// Error names the clusters that the selector matches, at most 20, each with its reason, and counts
// the rest. The same findings give the same text.
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
	case len(selected) == 0 && others == 1:
		return "the only cluster has no labels that match the selector"
	case len(selected) == 0:
		return fmt.Sprintf("none of %d clusters has labels that match the selector", others)
	case len(selected) > shown:
		selected = append(selected[:shown], fmt.Sprintf("and %d more", len(selected)-shown))
	}
	text := "no cluster fits: " + strings.Join(selected, "; ")
	if others == 1 {
		text += "; labels of 1 other do not match the selector"
	} else if others > 0 {
		text += fmt.Sprintf("; labels of %d others do not match the selector", others)
	}
	return text
}

// Has reports whether any of the clusters has that reason.
func (e *FitError) Has(reason Reason) bool {
	return slices.ContainsFunc(e.Clusters, func(c Misfit) bool { return c.Reason == reason })
}
