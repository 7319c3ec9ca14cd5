package manifest

import (
	"slices"
	"strings"
)

// ReasonAnnotationIgnored: an annotation instructs another tool when, or how, to apply the object. Waybill
// does not act on it.
const ReasonAnnotationIgnored = "AnnotationIgnored"

// foreign are the annotations that instruct other tools when, and how, to apply an object.
var foreign = []string{
	"argocd.argoproj.io/compare-options",
	"argocd.argoproj.io/hook",
	"argocd.argoproj.io/hook-delete-policy",
	"argocd.argoproj.io/sync-options",
	"argocd.argoproj.io/sync-wave",
	"helm.sh/hook",
	"helm.sh/hook-delete-policy",
	"helm.sh/hook-weight",
}

// Ignored returns a warning for each object with annotations that instruct Argo CD, or Helm, how to apply
// it: it is applied like any other.
func Ignored(objects []Object) []Problem {
	var warnings []Problem
	for _, o := range objects {
		metadata, _ := o.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		var found []string
		for key := range annotations {
			if slices.Contains(foreign, key) {
				found = append(found, key)
			}
		}
		if len(found) == 0 {
			continue
		}
		slices.Sort(found)
		word := "annotation "
		if len(found) > 1 {
			word = "annotations "
		}
		warnings = append(warnings, Problem{
			ID: o.ID(), File: o.File, Line: o.Line, Reason: ReasonAnnotationIgnored,
			Message: word + strings.Join(found, ", ") + " ignored: the object is applied with all others, and neither hooks nor waves are run",
		})
	}
	return warnings
}
