package reconcile

import (
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

const (
	// maxProblems is how many problems a status lists.
	maxProblems = 50
	// maxMessage bounds the message of one problem in a status, in bytes: the refusal of a webhook
	// may have any length, and etcd rejects objects that are too large.
	maxMessage = 2048
)

// Problems returns the first 50 problems as a status lists them, each with a message of one
// line and at most 2 KiB.
func Problems(found []manifest.Problem) []v1alpha1.Problem {
	var list []v1alpha1.Problem
	for _, p := range found[:min(len(found), maxProblems)] {
		list = append(list, v1alpha1.Problem{
			ObjectReference: v1alpha1.ObjectReference{Group: p.ID.Group, Kind: p.ID.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name},
			File:            p.File,
			Line:            int32(p.Line),
			Cluster:         p.Cluster,
			Reason:          p.Reason,
			Message:         excerpt.Of(excerpt.Line(p.Message), maxMessage),
		})
	}
	return list
}
