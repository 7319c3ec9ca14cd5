package placement

import (
	"cmp"
	"slices"
)

// Score returns how well a candidate suits a workload; higher is better.
type Score func(Workload, Candidate) int

// Scores is a chain: a later score counts only if all earlier ones are equal.
type Scores []Score

// DefaultScores returns scores that prefer clusters in which little runs.
func DefaultScores() Scores {
	return Scores{
		Spread,
	}
}

// Spread prefers the cluster with the lowest Placed, whatever its unit.
func Spread(_ Workload, c Candidate) int { return -c.Placed }

// Select returns the candidate with the best scores; among equals the first by name, so that the
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
