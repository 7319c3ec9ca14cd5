package cluster

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"waybill.dev/waybill/sync/excerpt"
)

const (
	// longestError is how much is kept of the text of an error. What cannot be decoded is quoted in its
	// error, as a whole, and the reflector keeps the last error until the next success.
	longestError = 4 << 10
	// mostCauses is how many causes are kept of an error of an API server.
	mostCauses = 20
)

// shortened returns err with a message of at most longestError bytes.
func shortened(err error) error {
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		short := *status
		if shortenStatus(&short.ErrStatus) {
			return &short
		}
		return err
	}
	if text := err.Error(); len(text) > longestError {
		return errors.New(shortText(text))
	}
	return err
}

// shortenStatus reports whether it had to shorten anything.
func shortenStatus(s *metav1.Status) (changed bool) {
	changed = len(s.Message) > longestError
	s.Message = shortText(s.Message)
	if s.Details == nil {
		return changed
	}
	size := 0
	for _, cause := range s.Details.Causes {
		size += len(cause.Type) + len(cause.Message) + len(cause.Field)
	}
	name := len(s.Details.Name) + len(s.Details.Group) + len(s.Details.Kind)
	if len(s.Details.Causes) <= mostCauses && size <= longestError && name <= longestError {
		return changed
	}
	details := &metav1.StatusDetails{
		Name: shortText(s.Details.Name), Group: shortText(s.Details.Group), Kind: shortText(s.Details.Kind),
		UID: s.Details.UID, RetryAfterSeconds: s.Details.RetryAfterSeconds,
	}
	for _, cause := range s.Details.Causes[:min(len(s.Details.Causes), mostCauses)] {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(shortText(string(cause.Type))), Message: shortText(cause.Message), Field: shortText(cause.Field),
		})
	}
	s.Details = details
	return true
}

// shortText returns the beginning of a text that is too long, as a copy, so that the rest is freed.
func shortText(text string) string { return excerpt.Of(text, longestError) }

// shortenEvent shortens the error that ends a watch.
func shortenEvent(e watch.Event) {
	if status, ok := e.Object.(*metav1.Status); ok && e.Type == watch.Error {
		shortenStatus(status)
	}
}
