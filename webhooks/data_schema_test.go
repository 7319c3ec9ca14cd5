package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

const (
	statefulApplication      = v1alpha1.StatefulApplicationKind
	statefulApplicationClass = v1alpha1.StatefulApplicationClassKind
	snapshot                 = v1alpha1.ApplicationSnapshotKind
	snapshotClass            = v1alpha1.ApplicationSnapshotClassKind
	snapshotContent          = v1alpha1.ApplicationSnapshotContentKind
	rollback                 = v1alpha1.ApplicationRollbackKind
)

const (
	fromSnapshot = `source: {type: Snapshot, snapshotRef: {name: monday}}`
	someDigest   = `digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"`
)

// C15, C17, S6, S7, S16, S19, S20, S23, S27, S30, S36, S37, S38, S42, S43, S52, S54, S58, S61, S64, S65, S68, S71, S72, S77: what
// the schema of each kind refuses, and what the message says.
func TestData_theSchemaRefuses(t *testing.T) {
	admin, ns := bare(t)
	for name, tc := range map[string]struct {
		kind, fields string
		message      string
	}{
		"neither application nor source": {statefulApplication, `{spec: {}}`, "name an Application, or a source to restore one from"},
		"rules without a source": {statefulApplication,
			`{spec: {applicationName: a, valueSubstitutionRules: [{type: Name, oldValue: a, newValue: b}]}}`, "valueSubstitutionRules apply only with a source"},
		"key of a Name rule": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Name, key: a, oldValue: a, newValue: b}]}}`, "key has no meaning for type Name"},
		"a name that goes": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Name, oldValue: a}]}}`, "newValue must not be empty for type Name"},
		"unknown rule": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Image, oldValue: a, newValue: b}]}}`, `supported values: "Name", "Label", "Annotation", "EnvVar"`},
		"unknown match": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Label, match: Glob, oldValue: a, newValue: b}]}}`, `supported values: "Substring", "Exact", "Regex"`},
		"nothing to replace": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Label, oldValue: "", newValue: b}]}}`, "oldValue"},
		"from a backup":          {statefulApplication, `{spec: {source: {type: Backup, backupRef: {name: a}}}}`, "backups are not supported yet"},
		"from nothing":           {statefulApplication, `{spec: {source: {type: Snapshot}}}`, "snapshotRef is required for type Snapshot"},
		"from something unknown": {statefulApplication, `{spec: {source: {type: Image}}}`, `supported values: "Snapshot", "Backup"`},
		"no handler":             {statefulApplicationClass, `{handler: ""}`, "handler"},

		"no class":         {snapshot, `{spec: {source: {type: Application, applicationName: a}}}`, "snapshotClassName: Required value"},
		"no source":        {snapshot, `{spec: {snapshotClassName: a}}`, "source: Required value"},
		"of nothing":       {snapshot, `{spec: {snapshotClassName: a, source: {type: Application}}}`, "applicationName is required for type Application"},
		"of a backup":      {snapshot, `{spec: {snapshotClassName: a, source: {type: Backup, backupName: a}}}`, "backups are not supported yet"},
		"without a type":   {snapshot, `{spec: {snapshotClassName: a, source: {applicationName: a}}}`, "type is required with applicationName or backupName"},
		"bound to nothing": {snapshot, `{spec: {snapshotClassName: a, source: {}}}`, "name a source, or the content to bind to in snapshotContentName"},
		"no time to live":  {snapshot, `{spec: {snapshotClassName: a, source: {type: Application, applicationName: a}, ttl: 0s}}`, "must be at least 1s"},
		"days to live":     {snapshot, `{spec: {snapshotClassName: a, source: {type: Application, applicationName: a}, ttl: 7d}}`, "720h"},
		"no time":          {snapshot, `{spec: {snapshotClassName: a, source: {type: Application, applicationName: a}, volumeSnapshotTimeoutSeconds: 0}}`, "volumeSnapshotTimeoutSeconds"},

		"no snapshotter":        {snapshotClass, `{snapshotter: ""}`, "snapshotter"},
		"recycled":              {snapshotClass, `{deletionPolicy: Recycle}`, `supported values: "Delete", "Retain"`},
		"hooks of what is down": {snapshotClass, `{quiesce: ScaleDown, preHooks: [{name: lock, actionName: lock}]}`, "do not run with quiesce ScaleDown"},
		"two hooks of one name": {snapshotClass, `{preHooks: [{name: lock, actionName: a}, {name: lock, actionName: b}]}`, "Duplicate value"},
		"a name that no ExecutionHook can have": {snapshotClass,
			`{postHooks: [{name: Un_lock, actionName: a}]}`, "postHooks[0].name"},
		"a hook without an action": {snapshotClass, `{preHooks: [{name: lock}]}`, "actionName"},
		"unknown quiescence":       {snapshotClass, `{quiesce: Pause}`, `supported values: "Hooks", "ScaleDown"`},
		"unknown storage":          {snapshotClass, `{metadataType: Bucket}`, `supported values: "Object", "OnDisk"`},

		"content without a class": {snapshotContent, `{spec: {}}`, "snapshotClassName"},
		"content without folder": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: OnDisk, ` + someDigest + `}}}`, "onDisk is required for type OnDisk"},
		"content without Secrets": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: Object, ` + someDigest + `}}}`, "object is required for type Object"},
		"a digest that is none": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: OnDisk, onDisk: {directory: a}, digest: "md5:00"}}}`, "metadataHandle.digest"},
		"a folder above": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: OnDisk, onDisk: {directory: a/../../b}, ` + someDigest + `}}}`, "must be a relative path without .."},
		"a folder elsewhere": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: OnDisk, onDisk: {directory: /etc}, ` + someDigest + `}}}`, "must be a relative path without .."},
		"the name of another's content": {snapshot,
			`{spec: {snapshotClassName: a, source: {type: Application, applicationName: a}, snapshotContentName: snapcontent-0a1b}}`, "must not begin with snapcontent-"},
		"content recycled": {snapshotContent, `{spec: {snapshotClassName: a, deletionPolicy: Recycle}}`, `supported values: "Delete", "Retain"`},

		"no class for the safety snapshot": {rollback, `{spec: {applicationName: a, ` + fromSnapshot + `}}`, "snapshotClassName"},
		"rollback of nothing":              {rollback, `{spec: {snapshotClassName: a, ` + fromSnapshot + `}}`, "applicationName"},
		"rollback to nothing":              {rollback, `{spec: {snapshotClassName: a, applicationName: a}}`, "source"},
		"rollback to a backup":             {rollback, `{spec: {snapshotClassName: a, applicationName: a, source: {type: Backup}}}`, "backups are not supported yet"},
		"undone before it was done": {rollback,
			`{spec: {snapshotClassName: a, applicationName: a, undoPeriod: -1s, ` + fromSnapshot + `}}`, "must be in hours, minutes and seconds"},
		"undone for ever": {rollback,
			`{spec: {snapshotClassName: a, applicationName: a, undoPeriod: 720h1s, ` + fromSnapshot + `}}`, "must be at most 720h"},
		"undecidable": {rollback,
			`{spec: {snapshotClassName: a, applicationName: a, decision: Maybe, ` + fromSnapshot + `}}`, `supported values: "Undecided", "Confirmed", "Undone"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := admin.Create(t.Context(), dataObject(t, tc.kind, ns, tc.fields))
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, tc.message)
		})
	}
}

// S12, S23, S32, S38, S57, S65, S77, C18: the least that each kind needs is accepted, with what it
// leaves out filled in.
func TestData_theSchemaFillsIn(t *testing.T) {
	admin, ns := bare(t)
	for name, tc := range map[string]struct {
		kind, fields string
		path         string
		want         any
	}{
		"rules are substrings": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Label, oldValue: a, newValue: b}]}}`, "spec.valueSubstitutionRules.0.match", "Substring"},
		"a label that goes": {statefulApplication,
			`{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: Label, oldValue: a}]}}`, "spec.valueSubstitutionRules.0.newValue", ""},
		"not seen yet":         {statefulApplication, `{}`, "status.observedGeneration", int64(-1)},
		"for other handlers":   {statefulApplicationClass, `{handler: other, parameters: {a: b}}`, "parameters.a", "b"},
		"bound":                {snapshot, `{spec: {snapshotClassName: a, source: {}, snapshotContentName: b}}`, "spec.snapshotContentName", "b"},
		"bound to one of ours": {snapshot, `{spec: {snapshotClassName: a, source: {}, snapshotContentName: snapcontent-0a1b}}`, "spec.snapshotContentName", "snapcontent-0a1b"},
		"snapshot, not seen":   {snapshot, `{}`, "status.observedGeneration", int64(-1)},
		"hooks":                {snapshotClass, `{}`, "quiesce", "Hooks"},
		"in Secrets":           {snapshotClass, `{}`, "metadataType", "Object"},
		"deleted":              {snapshotClass, `{}`, "deletionPolicy", "Delete"},
		"for other snapshoter": {snapshotClass, `{snapshotter: other, parameters: {a: b}}`, "parameters.a", "b"},
		"content, not seen":    {snapshotContent, `{}`, "status.observedGeneration", int64(-1)},
		"content on disk": {snapshotContent,
			`{spec: {snapshotClassName: a, metadataHandle: {type: OnDisk, onDisk: {directory: a/b-1.x}, ` + someDigest + `}}}`, "spec.metadataHandle.type", "OnDisk"},
		"undecided": {rollback, `{}`, "spec.decision", "Undecided"},
		"held":      {rollback, `{}`, "spec.hold", true},
		"at once":   {rollback, `{spec: {snapshotClassName: a, applicationName: a, undoPeriod: 0s, ` + fromSnapshot + `}}`, "spec.undoPeriod", "0s"},
		"30 days":   {rollback, `{spec: {snapshotClassName: a, applicationName: a, undoPeriod: 720h, ` + fromSnapshot + `}}`, "spec.undoPeriod", "720h"},
	} {
		t.Run(name, func(t *testing.T) {
			u := dataObject(t, tc.kind, ns, tc.fields)
			require.NoError(t, admin.Create(t.Context(), u))
			assert.Equal(t, tc.want, at(t, u, tc.path))
		})
	}
}

// at returns the value at a path of fields and indexes.
func at(t *testing.T, u *unstructured.Unstructured, path string) any {
	t.Helper()
	var value any = u.Object
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			require.Contains(t, v, step, path)
			value = v[step]
		case []any:
			require.Len(t, v, 1, path)
			value = v[0]
		}
	}
	return value
}

// S9, S11, S36, S37, S38, S40, S41, S68, S74, S77, C15: what a snapshot, a restore or a rollback is of does not change
// under it.
func TestData_isImmutable(t *testing.T) {
	admin, ns := bare(t)
	const restored = `{status: {restore: {phase: Pending}}}`
	const creating = `{status: {restore: {phase: Claims}}}`
	const rules = `valueSubstitutionRules: [{type: Label, oldValue: a, newValue: b}]`
	for name, tc := range map[string]struct {
		kind, fields, status, change string
		message                      string // empty: allowed
	}{
		"application":            {statefulApplication, `{}`, ``, `{spec: {applicationName: other}}`, "applicationName is immutable"},
		"application, taken out": {statefulApplication, `{spec: {applicationName: a, ` + fromSnapshot + `}}`, ``, `{spec: {` + fromSnapshot + `}}`, "applicationName is immutable"},
		"application, set": {statefulApplication, `{spec: {` + fromSnapshot + `}}`, ``,
			`{spec: {applicationName: other, ` + fromSnapshot + `}}`, "applicationName is immutable"},
		"source": {statefulApplication, `{spec: {` + fromSnapshot + `}}`, restored,
			`{spec: {source: {type: Snapshot, snapshotRef: {name: tuesday}}}}`, "spec.source is immutable once the restore has begun"},
		"source, taken out": {statefulApplication, `{spec: {applicationName: a, ` + fromSnapshot + `}}`, restored,
			`{spec: {applicationName: a}}`, "spec.source is immutable once the restore has begun"},
		"rules": {statefulApplication, `{spec: {` + rules + `, ` + fromSnapshot + `}}`, creating,
			`{spec: {valueSubstitutionRules: [{type: Label, oldValue: a, newValue: c}], ` + fromSnapshot + `}}`, "spec.valueSubstitutionRules is immutable once"},
		"rules, set":                     {statefulApplication, `{spec: {` + fromSnapshot + `}}`, creating, `{spec: {` + rules + `, ` + fromSnapshot + `}}`, "spec.valueSubstitutionRules is immutable once"},
		"source, not begun":              {statefulApplication, `{spec: {` + fromSnapshot + `}}`, ``, `{spec: {source: {type: Snapshot, snapshotRef: {name: tuesday}}}}`, ""},
		"rules, before anything is made": {statefulApplication, `{spec: {` + fromSnapshot + `}}`, restored, `{spec: {` + rules + `, ` + fromSnapshot + `}}`, ""},
		"class of the application":       {statefulApplication, `{spec: {` + fromSnapshot + `}}`, restored, `{spec: {applicationClassName: b, ` + fromSnapshot + `}}`, ""},

		"snapshot's class": {snapshot, `{}`, ``, `{spec: {snapshotClassName: other, source: {type: Application, applicationName: mongo}}}`, "snapshotClassName and source are immutable"},
		"snapshot's source": {snapshot, `{}`, ``,
			`{spec: {snapshotClassName: mongo, source: {type: Application, applicationName: other}}}`, "snapshotClassName and source are immutable"},
		"snapshot's filter": {snapshot, `{}`, ``,
			`{spec: {snapshotClassName: mongo, persistentVolumeClaimFilter: {}, source: {type: Application, applicationName: mongo}}}`, "persistentVolumeClaimFilter is immutable"},
		"snapshot's content": {snapshot, `{}`, ``,
			`{spec: {snapshotClassName: mongo, snapshotContentName: a, source: {type: Application, applicationName: mongo}}}`, "snapshotContentName is immutable"},
		"snapshot's life": {snapshot, `{}`, ``,
			`{spec: {snapshotClassName: mongo, ttl: 24h, tags: {a: b}, source: {type: Application, applicationName: mongo}}}`, ""},

		"content's class": {snapshotContent, `{}`, ``, `{spec: {snapshotClassName: other}}`, "snapshotClassName is immutable"},
		"content's handle": {snapshotContent, `{spec: {snapshotClassName: a, metadataHandle: ` + handle("one") + `}}`, ``,
			`{spec: {snapshotClassName: a, metadataHandle: ` + handle("other") + `}}`, "metadataHandle is immutable"},
		"content, bound": {snapshotContent, `{spec: {snapshotClassName: a, snapshotRef: {namespace: a, name: b, uid: c}}}`, ``,
			`{spec: {snapshotClassName: a, snapshotRef: {namespace: x, name: b, uid: c}}}`, "a bound content is not bound again"},
		"content, freed": {snapshotContent, `{spec: {snapshotClassName: a, snapshotRef: {namespace: a, name: b, uid: c}}}`, ``,
			`{spec: {snapshotClassName: a}}`, "a bound content is not bound again"},
		"content, being bound": {snapshotContent, `{spec: {snapshotClassName: a, snapshotRef: {namespace: a, name: b}}}`, ``,
			`{spec: {snapshotClassName: a, deletionPolicy: Retain, snapshotRef: {namespace: a, name: b, uid: c}}}`, ""},

		"rollback's class": {rollback, `{}`, ``,
			`{spec: {snapshotClassName: other, applicationName: mongo, ` + fromSnapshot + `}}`, "applicationName, snapshotClassName and source are immutable"},
		"rollback's application": {rollback, `{}`, ``,
			`{spec: {snapshotClassName: mongo, applicationName: other, ` + fromSnapshot + `}}`, "applicationName, snapshotClassName and source are immutable"},
		"rollback's source": {rollback, `{}`, ``,
			`{spec: {snapshotClassName: mongo, applicationName: mongo, source: {type: Snapshot, snapshotRef: {name: other}}}}`, "applicationName, snapshotClassName and source are immutable"},
		"rollback's decision": {rollback, `{}`, ``,
			`{spec: {snapshotClassName: mongo, applicationName: mongo, decision: Undone, hold: false, undoPeriod: 1h, ` + fromSnapshot + `}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := dataObject(t, tc.kind, ns, tc.fields)
			require.NoError(t, admin.Create(t.Context(), u))
			if tc.status != "" {
				u = changedTo(t, u, tc.status)
				require.NoError(t, admin.Status().Update(t.Context(), u))
			}
			u.Object["spec"] = nil
			err := admin.Update(t.Context(), changedTo(t, u, tc.change))
			if tc.message == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, tc.message)
		})
	}
}

// handle returns a metadataHandle of Secrets of that name.
func handle(name string) string {
	return `{type: Object, object: {name: ` + name + `, chunks: 1}, digest: "sha256:` + strings.Repeat("0", 64) + `"}`
}

// C48: the rules are affordable where everything is as large as may be.
func TestData_theSchemaAtItsLimits(t *testing.T) {
	admin, ns := bare(t)
	var rules []string
	for i := range 100 {
		rules = append(rules, fmt.Sprintf(`{type: EnvVar, key: K%d, match: Regex, oldValue: %q, newValue: %q, selector: {matchLabels: {a: "b"}}}`,
			i, strings.Repeat("o", 4096), strings.Repeat("n", 4096)))
	}
	u := dataObject(t, statefulApplication, ns, `{spec: {`+fromSnapshot+`, valueSubstitutionRules: [`+strings.Join(rules, ", ")+`]}}`)
	require.NoError(t, admin.Create(t.Context(), u))
	u = changedTo(t, u, `{status: {restore: {phase: Objects}}}`)
	require.NoError(t, admin.Status().Update(t.Context(), u))
	u.SetLabels(map[string]string{"a": "b"})
	require.NoError(t, admin.Update(t.Context(), u), "an update compares all with all")
}

// S17, S49, S50, C63: `kubectl get` says what people ask for first.
func TestData_columns(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "bare", NoControllers: true, CRDs: []string{crds}})
	admin, _ := newClient(t, c.RESTConfig(), nil)
	ns := c.Namespace(t)
	const ready = `conditions: [{type: Ready, status: "True", reason: Succeeded, message: done, lastTransitionTime: "2026-01-02T03:04:05Z"}]`
	for kind, tc := range map[string]struct {
		fields, status string
		header, row    []string
	}{
		statefulApplication: {`{spec: {applicationName: shop, ` + fromSnapshot + `}}`,
			`{status: {` + ready + `, source: {apiGroup: apps.waybill.dev, kind: ApplicationSnapshot, namespace: a, name: monday, uid: u}, lastSnapshotTime: "2026-01-02T03:04:05Z"}}`,
			[]string{"NAME", "APPLICATION", "READY", "SOURCE", "LAST-SNAPSHOT", "AGE", "STATUS"}, []string{"shop", "True", "monday", "done"}},
		statefulApplicationClass: {`{}`, ``, []string{"NAME", "HANDLER", "AGE"}, []string{"data.waybill.dev"}},
		snapshot: {`{}`, `{status: {` + ready + `, phase: Ready, consistency: Group, quiescedFor: 900ms, size: 3Gi, boundSnapshotContentName: snapcontent-1}}`,
			[]string{"NAME", "APPLICATION", "READY", "CONSISTENCY", "QUIESCED", "SIZE", "AGE", "CONTENT", "STATUS"},
			[]string{"mongo", "True", "Group", "900ms", "3Gi", "snapcontent-1", "done"}},
		snapshotClass: {`{}`, ``, []string{"NAME", "SNAPSHOTTER", "QUIESCE", "DELETION-POLICY", "AGE"}, []string{"data.waybill.dev", "Hooks", "Delete"}},
		snapshotContent: {`{spec: {snapshotClassName: a, deletionPolicy: Retain, snapshotRef: {namespace: ns-1, name: monday}}}`, `{status: {consistency: Cold}}`,
			[]string{"NAME", "NAMESPACE", "SNAPSHOT", "CONSISTENCY", "DELETION-POLICY", "AGE"}, []string{"ns-1", "monday", "Cold", "Retain"}},
		rollback: {`{}`, `{status: {` + ready + `, phase: Swapping}}`,
			[]string{"NAME", "APPLICATION", "SNAPSHOT", "PHASE", "READY", "AGE", "STATUS"}, []string{"mongo", "monday", "Swapping", "True", "done"}},
	} {
		t.Run(kind, func(t *testing.T) {
			u := dataObject(t, kind, ns, tc.fields)
			require.NoError(t, admin.Create(t.Context(), u))
			if tc.status != "" {
				require.NoError(t, admin.Status().Patch(t.Context(), changedTo(t, u, tc.status), client.MergeFrom(u)))
			}
			out, err := c.Kubectl(t.Context(), "", "get", strings.ToLower(kind), u.GetName(), "--namespace="+ns, "-o", "wide")
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 2, out)
			assert.Equal(t, tc.header, strings.Fields(lines[0]))
			row := strings.Fields(lines[1])
			require.Len(t, row, len(tc.header), out)
			for _, want := range tc.row {
				assert.Contains(t, row, want)
			}
		})
	}
}
