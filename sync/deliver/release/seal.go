package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/api/v1alpha1"
)

// seal returns the digest of what a record may have executed: the manifest and the hooks of that
// revision of that release, as 64 hexadecimal digits. It leaves out what changes while Helm acts,
// such as the status and when a hook last ran, and also the chart and the values, from which
// nothing is ever rendered again. It also leaves out the order of the hooks, which `helm test`
// changes: they run by weight.
func seal(r *helmrelease.Release) string {
	executable := struct {
		Namespace, Name string
		Version         int
		Manifest        string
		Hooks           []helmrelease.Hook
	}{r.Namespace, r.Name, r.Version, stored(r.Manifest), nil}
	for _, h := range r.Hooks {
		if h == nil {
			return "" // which matches no known record
		}
		hook := *h
		hook.Manifest = stored(h.Manifest)
		hook.LastRun = helmrelease.HookExecution{}
		if len(hook.DeletePolicies) == 0 { // Helm fills in its default when a hook runs
			hook.DeletePolicies = []helmrelease.HookDeletePolicy{helmrelease.HookBeforeHookCreation}
		}
		executable.Hooks = append(executable.Hooks, hook)
	}
	slices.SortStableFunc(executable.Hooks, func(a, b helmrelease.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Manifest, b.Manifest))
	})
	data, err := json.Marshal(executable)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// stored returns text as it comes back from JSON, which replaces bytes that are not UTF-8.
func stored(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// sealsOf returns the known digests by revision.
func sealsOf(known *v1alpha1.ReleaseStatus) map[int]string {
	seals := map[int]string{}
	if known == nil {
		return seals
	}
	if known.Fallback != nil {
		seals[int(known.Fallback.Revision)] = known.Fallback.RecordDigest
	}
	seals[int(known.Revision)] = known.RecordDigest
	return seals
}

// storedDigestsOf returns the known digests of the bytes of records, by revision.
func storedDigestsOf(known *v1alpha1.ReleaseStatus) map[int]string {
	digests := map[int]string{}
	if known == nil {
		return digests
	}
	if known.Fallback != nil {
		digests[int(known.Fallback.Revision)] = known.Fallback.StoredDigest
	}
	digests[int(known.Revision)] = known.StoredDigest
	return digests
}

// altered returns the error for a revision whose record must not be used.
func (i Identity) altered(revision int) error {
	return &Error{Reason: ReasonAltered, Err: fmt.Errorf("the record of revision %d of release %s differs from what Waybill recorded", revision, i)}
}

// current returns the newest revision, if it is the known one and is as it was written: an earlier
// one no longer says what is desired.
func (s *session) current() (*helmrelease.Release, error) {
	newest, _ := s.observed.newest()
	found, err := s.store.Get(s.store.key(newest.Number))
	if err != nil {
		return nil, err
	}
	if s.id.Known == nil || int(s.id.Known.Revision) != newest.Number || s.store.isAltered(newest.Number) {
		return nil, s.id.altered(newest.Number)
	}
	return found, nil
}
