package cluster

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// What watches a kind keeps all pages of a list until the last one, with everything that is in them. An
// API server may go on for ever, with objects that it has sent already.

// pages is the weight of such a list so far, in an account.
type pages struct {
	weight int64
	booked int64 // what the ledger knows of: nothing as long as there is one page
}

// receive takes note of a page. It reports whether all lists of the cluster together are too large.
func (a *account) receive(page apiruntime.Object, first bool) (exceeds bool) {
	of, err := meta.ListAccessor(page)
	if err != nil {
		return false
	}
	more := of.GetContinue() != ""
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if first && !more || !first && a.pages.weight == 0 {
		return false // a single page, which is not added to others
	}
	a.pages.weight += weightOfPage(page)
	switch {
	case !more:
		a.leave()
	case !first:
		exceeds = a.ledger.receive(a.pages.weight - a.pages.booked)
		a.pages.booked = a.pages.weight
	}
	return exceeds
}

// leave forgets the pages. The caller holds the lock.
func (a *account) leave() {
	a.ledger.receive(-a.pages.booked)
	a.pages = pages{}
}

// weightOfPage estimates how much memory a page takes, with what is not kept of it later.
func weightOfPage(page apiruntime.Object) int64 {
	weight := int64(objectWeight) // so that a page of nothing is one, too
	_ = meta.EachListItem(page, func(item apiruntime.Object) error {
		if whole, ok := item.(apiruntime.Unstructured); ok {
			weight += objectWeight + weightOfAll(whole.UnstructuredContent())
			return nil
		}
		weight += objectWeight + weightOfValue(reflect.ValueOf(item))
		if with, ok := item.(metav1.Object); ok {
			for _, entry := range with.GetManagedFields() {
				if weight += objectWeight; entry.FieldsV1 != nil {
					weight += int64(len(entry.FieldsV1.GetRawBytes()))
				}
			}
		}
		return nil
	})
	return weight
}

// weightOfAll is the weight of what JSON becomes.
func weightOfAll(value any) int64 {
	weight := int64(0)
	switch v := value.(type) {
	case string:
		weight = int64(len(v))
	case map[string]any:
		for key, inner := range v {
			weight += entryWeight + int64(len(key)) + weightOfAll(inner)
		}
	case []any:
		for _, inner := range v {
			weight += entryWeight + weightOfAll(inner)
		}
	}
	return weight
}
