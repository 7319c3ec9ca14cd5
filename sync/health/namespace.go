package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/excerpt"
)

// endings are the conditions of a Namespace that say why its deletion does not come to an end.
var endings = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceContentRemaining", "NamespaceFinalizersRemaining",
}

// NamespaceProblem returns what a Namespace that is being deleted waits for, in the words of its
// conditions, on one line and within bounds; empty if it is not being deleted, or does not say.
func NamespaceProblem(namespace *unstructured.Unstructured) string {
	if namespace.GetDeletionTimestamp() == nil {
		return ""
	}
	var said []string
	for _, name := range endings {
		if c, found := condition(namespace.Object, name); found && c.status == "True" && c.message != "" {
			said = append(said, excerpt.Of(excerpt.Line(c.message), maxSaid))
		}
	}
	return strings.Join(said, "; ")
}
