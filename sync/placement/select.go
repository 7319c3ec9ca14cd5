package placement

import (
	"cmp"
	"slices"
)

// Score says how well a candidate suits a workload; more is better.
type Score func(Workload, Candidate) int

// Scores is a chain: a later score counts where all before it are equal.
type Scores []Score

// DefaultScores prefer clusters in which little runs.
func DefaultScores() Scores {
	return Scores{
		Spread,
	}
}

// Spread prefers the cluster in which least is placed, whatever the unit of Placed is.
func Spread(_ Workload, c Candidate) int { return -c.Placed }

// Select returns the candidate with the best scores; of equals the first by name, so that the
// same findings lead to the same cluster. There must be at least one.
func (s Scores) Select(w Workload, fitting []Candidate) Candidate {
	return slices.MinFunc(fitting, func(a, b Candidate) int {
		for _, score := range s {
			if order := cmp.Compare(score(w, b), score(w, a)); order != 0 {
				return order
			}
		}
		return cmp.Compare(a.Name, b.Name)
	})
}
