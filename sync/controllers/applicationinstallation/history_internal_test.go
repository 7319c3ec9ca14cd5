package applicationinstallation

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

func entry(revision int32, version string, outcome v1alpha1.InstallationOutcome) v1alpha1.InstallationRecord {
	return v1alpha1.InstallationRecord{Revision: revision, Version: version, Outcome: outcome}
}

func revision(number int32, status string) *v1alpha1.ReleaseStatus {
	return &v1alpha1.ReleaseStatus{Name: "web", Revision: number, Status: status}
}

// K46: what each action leaves in the history.
func TestAttempt_recorded(t *testing.T) {
	const deployed, failed, back = v1alpha1.InstallationDeployed, v1alpha1.InstallationFailed, v1alpha1.InstallationRolledBack
	why := errors.New("refused")
	first := []v1alpha1.InstallationRecord{entry(1, "1", deployed)}
	second := []v1alpha1.InstallationRecord{entry(2, "2", deployed), entry(1, "1", deployed)}
	to2 := v1alpha1.InstallationRecord{Version: "2"}
	cases := map[string]struct {
		attempt attempt
		history []v1alpha1.InstallationRecord
		got     acted
		known   *v1alpha1.ReleaseStatus
		want    []v1alpha1.InstallationRecord
	}{
		"an upgrade":                      {attempt{kind: install, record: to2}, first, acted{}, revision(2, "deployed"), second},
		"nothing to do":                   {attempt{kind: install, record: to2}, second, acted{}, revision(2, "deployed"), second},
		"not the end of it":               {attempt{kind: install, record: to2}, first, acted{}, revision(2, "failed"), first},
		"a correction":                    {attempt{kind: correct, record: to2}, first, acted{}, revision(2, "deployed"), first},
		"a failure":                       {attempt{kind: install, record: to2}, first, acted{findings: findings{failure: why}, release: revision(2, "failed")}, nil, []v1alpha1.InstallationRecord{entry(2, "2", failed), first[0]}},
		"a failure before anything":       {attempt{kind: install, record: to2}, first, notInstalled(why), nil, []v1alpha1.InstallationRecord{entry(0, "2", failed), first[0]}},
		"a failure again":                 {attempt{kind: install, record: to2}, []v1alpha1.InstallationRecord{entry(2, "2", failed), first[0]}, acted{findings: findings{failure: why}, release: revision(3, "failed")}, nil, []v1alpha1.InstallationRecord{entry(3, "2", failed), first[0]}},
		"a failure that was undone":       {attempt{kind: install, record: to2, before: revision(1, "deployed")}, first, acted{findings: findings{failure: why}, release: revision(3, "deployed")}, nil, []v1alpha1.InstallationRecord{entry(3, "1", back), entry(2, "2", failed), first[0]}},
		"an install that was undone":      {attempt{kind: install, record: to2}, nil, acted{findings: findings{failure: why}, release: &v1alpha1.ReleaseStatus{}}, nil, []v1alpha1.InstallationRecord{entry(0, "2", failed)}},
		"a rollback":                      {attempt{kind: rollBack, before: revision(2, "deployed"), to: 1}, second, acted{findings: findings{failure: why}, release: revision(3, "deployed")}, nil, []v1alpha1.InstallationRecord{entry(3, "1", back), entry(2, "2", failed), first[0]}},
		"a rollback to what is not known": {attempt{kind: rollBack, before: revision(2, "deployed"), to: 9}, second, acted{findings: findings{failure: why}, release: revision(3, "deployed")}, nil, []v1alpha1.InstallationRecord{entry(3, "", back), entry(2, "2", failed), first[0]}},
		"a rollback of all":               {attempt{kind: rollBack, before: revision(1, "deployed")}, first, acted{findings: findings{failure: why}, release: &v1alpha1.ReleaseStatus{}}, nil, []v1alpha1.InstallationRecord{entry(1, "1", failed)}},
		"a rollback that was spared":      {attempt{kind: rollBack, before: revision(2, "deployed"), to: 1}, second, acted{spared: true}, nil, second},
		"a rollback with data":            {attempt{kind: goBack, before: revision(2, "deployed"), to: 1}, second, acted{returned: true, release: revision(3, "deployed")}, nil, append([]v1alpha1.InstallationRecord{entry(3, "1", back)}, second...)},
		"a rollback with data, not of it": {attempt{kind: goBack, before: revision(2, "deployed"), to: 1}, second, acted{returned: true, notReturned: "gone"}, nil, second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.attempt.method = v1alpha1.MethodHelm
			assert.Equal(t, c.want, bare(c.attempt.recorded(c.history, c.got, c.known)))
		})
	}
}

// bare leaves out when each entry was written, and why.
func bare(history []v1alpha1.InstallationRecord) []v1alpha1.InstallationRecord {
	var all []v1alpha1.InstallationRecord
	for _, r := range history {
		r.FinishedAt, r.Message = metav1.Time{}, ""
		all = append(all, r)
	}
	return all
}

// C25: a kustomization has no releases, and its entries are counted.
func TestAttempt_recordedOfAKustomization(t *testing.T) {
	at := func(how kind, source string, why error, history []v1alpha1.InstallationRecord) []v1alpha1.InstallationRecord {
		a := attempt{kind: how, method: v1alpha1.MethodKustomize, record: v1alpha1.InstallationRecord{Version: "1", SourceRevision: source}}
		return a.recorded(history, notCorrected(why), nil)
	}
	history := at(install, "main@a", errors.New("refused"), nil)
	history = at(install, "main@a", errors.New("refused again"), history)
	require.Len(t, history, 1)
	assert.Equal(t, "refused again", history[0].Message)
	history = at(correct, "main@a", nil, history)
	assert.Equal(t, history, at(install, "main@a", nil, history), "nothing new, as after a restart")
	assert.Equal(t, history, at(compare, "main@a", errors.New("refused"), history), "what was deployed drifts")
	assert.Equal(t, history, at(uninstall, "main@b", nil, history))
	history = at(install, "main@b", nil, history)
	require.Len(t, history, 3)
	for i, want := range []string{"main@b Deployed", "main@a Deployed", "main@a Failed"} {
		assert.Equal(t, want, history[i].SourceRevision+" "+string(history[i].Outcome))
		assert.EqualValues(t, 3-i, history[i].Revision)
	}
}

// The history stays small, whatever happens.
func TestAttempt_recordedIsBounded(t *testing.T) {
	var history []v1alpha1.InstallationRecord
	for i := range int32(30) {
		a := attempt{kind: install, method: v1alpha1.MethodHelm, record: v1alpha1.InstallationRecord{ValuesDigest: strings.Repeat("x", int(i))}}
		history = a.recorded(history, acted{findings: findings{failure: errors.New(strings.Repeat("long\n", 1000))}, release: revision(i+1, "failed")}, nil)
	}
	require.Len(t, history, v1alpha1.MaxInstallationHistory)
	assert.EqualValues(t, 30, history[0].Revision, "the newest first")
	assert.LessOrEqual(t, len(history[0].Message), maxRecordMessage)
}
