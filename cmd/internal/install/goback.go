package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values"
)

// Revisions returns the entries of the history of an installation that it can go back to, newest first.
func Revisions(inst *v1alpha1.ApplicationInstallation) []*v1alpha1.InstallationRecord {
	var found []*v1alpha1.InstallationRecord
	for i := range inst.Status.History {
		if r := &inst.Status.History[i]; r.Revision != 0 && r.Version != "" && r.Outcome != v1alpha1.InstallationFailed {
			found = append(found, r)
		}
	}
	return found
}

// ValuesLostError says why the values of a revision cannot be set again.
type ValuesLostError struct{ err error }

// Error returns the reason.
func (e *ValuesLostError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *ValuesLostError) Unwrap() error { return e.err }

// RollBack returns an installation as it was at a revision: its version, and its values unless those are to be
// kept. If the values are not known for sure, it is a *ValuesLostError: an old version with other values than before
// is not what was asked for.
func (s *Session) RollBack(ctx context.Context, inst *v1alpha1.ApplicationInstallation, to *v1alpha1.InstallationRecord, keepValues bool) (*v1alpha1.ApplicationInstallation, error) {
	after := inst.DeepCopy()
	if err := s.SetVersion(ctx, after, to.Version); err != nil {
		return nil, err
	}
	if keepValues || after.ValuesDigest() == to.ValuesDigest {
		return after, nil
	}
	own, err := s.valuesAt(ctx, after, to)
	if err != nil {
		return nil, &ValuesLostError{fmt.Errorf("%s has other values than at revision %d, and those cannot be set again: %w", s.NameOf(inst), to.Revision, err)}
	}
	if inst.Spec.ValuesBlock != "" {
		s.Warn("the values of %s are a block with comments: spec.values takes its place, without them", s.NameOf(inst))
	}
	return after, SetValues(after, own)
}

// valuesAt returns what an installation has to set itself for the values of a revision: what Helm's
// record of it has, and what lies below does not say already.
func (s *Session) valuesAt(ctx context.Context, inst *v1alpha1.ApplicationInstallation, to *v1alpha1.InstallationRecord) (map[string]any, error) {
	known := inst.Status.Release
	switch {
	case known == nil:
		return nil, errors.New("only Helm records values")
	case to.SecretValues || inst.HasSecretValues():
		return nil, errors.New("some came from a Secret, and would be readable in spec.values")
	}
	id := release.Identity{Namespace: known.Namespace, Name: known.Name}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: known.Namespace, Name: id.RecordName(int(to.Revision))}
	if err := s.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get Secret %s, Helm's record: %w", key, s.Target.Explain(err))
	}
	had, err := release.RecordedValues(secret, int(to.Revision), known)
	if err != nil {
		return nil, err
	}
	below := inst.DeepCopy()
	below.Spec.Values, below.Spec.ValuesBlock = nil, ""
	lookup := installation.NewLookup(s.Place)
	lookup.Placed = false // what is installed has values, offered or not
	resolved, err := lookup.Resolve(ctx, installation.Wish{Installation: below})
	if err != nil {
		return nil, err
	}
	return over(resolved.Values, had)
}

// over returns what lies over values so that they become what they were.
func over(below, had map[string]any) (map[string]any, error) {
	had, err := plain(had)
	if err != nil {
		return nil, err
	}
	if below, err = plain(below); err != nil {
		return nil, err
	}
	own := differing(below, had)
	if merged := helm.MergeValues(below, own); !reflect.DeepEqual(merged, had) {
		return nil, errors.New("the definition, or an object of spec.valuesFrom, sets others by now, which no value of the installation takes back")
	}
	return own, nil
}

// differing returns the values of had that below has not.
func differing(below, had map[string]any) map[string]any {
	own := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		value := had[name]
		under, there := below[name]
		inner, isMap := value.(map[string]any)
		innerUnder, underMap := under.(map[string]any)
		switch {
		case there && reflect.DeepEqual(value, under):
		case isMap && underMap:
			own[name] = differing(innerUnder, inner)
		default:
			own[name] = value
		}
	}
	return own
}

// plain returns values as they are read from YAML, whatever the types of their numbers.
func plain(from map[string]any) (map[string]any, error) {
	if len(from) == 0 {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	return values.Parse(text)
}

// jsonOf returns a value as JSON, in a line.
func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // it was read from YAML or JSON, which has no such value
	}
	return string(text)
}
