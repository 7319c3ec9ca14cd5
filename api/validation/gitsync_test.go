package validation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func gitSync(change func(*v1alpha1.GitSync)) *v1alpha1.GitSync {
	g := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Name: "catalog", Namespace: "waybill-system"},
		Spec:       v1alpha1.GitSyncSpec{URL: "https://git.example.com/platform/catalog"},
	}
	if change != nil {
		change(g)
	}
	return g
}

func withURL(url string) func(*v1alpha1.GitSync) {
	return func(g *v1alpha1.GitSync) { g.Spec.URL = url }
}

func withRef(ref v1alpha1.GitReference) func(*v1alpha1.GitSync) {
	return func(g *v1alpha1.GitSync) { g.Spec.Ref = &ref }
}

func withPath(path string) func(*v1alpha1.GitSync) {
	return func(g *v1alpha1.GitSync) { g.Spec.Path = path }
}

// K20, K21, C37, C56
func TestValidateGitSync_accepts(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.GitSync){
		"the least":           nil,
		"ssh with a user":     withURL("ssh://git@git.example.com:22/platform/catalog"),
		"the short ssh form":  withURL("git@git.example.com:platform/catalog.git"),
		"http without Secret": withURL("http://git.example.com/catalog"),
		"a nested path":       withPath("clusters/production/"),
		"a path from here":    withPath("./clusters"),
		"dots in a name":      withPath("clusters/a..b"),
		"a branch in folders": withRef(v1alpha1.GitReference{Branch: "feature/x-1"}),
		"a range of tags":     withRef(v1alpha1.GitReference{SemVer: ">=1.2.0 <2.0.0"}),
		"a pull request":      withRef(v1alpha1.GitReference{Name: "refs/pull/420/head"}),
		"a commit of a branch": withRef(v1alpha1.GitReference{
			Branch: "main", Commit: "0123456789abcdef0123456789abcdef01234567"}),
		"a file without a namespace": func(g *v1alpha1.GitSync) { g.Namespace = "" },
	} {
		t.Run(reason, func(t *testing.T) {
			assertErrors(t, nil, validation.ValidateGitSync(gitSync(change), nil), reason)
		})
	}
}

// K20, K21, A29, C48
func TestValidateGitSync_refuses(t *testing.T) {
	url, ref, path := spec.Child("url"), spec.Child("ref"), spec.Child("path")
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.GitSync)
		want   field.ErrorList
	}{
		"no url":   {"nothing to pull from", withURL(""), field.ErrorList{field.Required(url, "")}},
		"file url": {"the file system of the controller is not the user's", withURL("file:///etc"), field.ErrorList{field.Invalid(url, "file:///etc", "")}},
		"no host":  {"no server", withURL("https:///catalog"), field.ErrorList{field.Invalid(url, "https:///catalog", "")}},
		"blank":    {"no URL", withURL("https://git.example.com/a b"), field.ErrorList{invalid(url)}},
		"option":   {"a host that ssh would take for an option", withURL("git@-oProxyCommand:x"), field.ErrorList{invalid(url)}},
		"password": {"specs are no place for secrets", withURL("https://me:hunter2@git.example.com/x"), field.ErrorList{field.Forbidden(url, "")}},
		"token":    {"a user alone may be a token", withURL("https://ghp_x@git.example.com/x"), field.ErrorList{field.Forbidden(url, "")}},
		"plain http": {"the Secret would be sent in clear", func(g *v1alpha1.GitSync) {
			g.Spec.URL = "http://git.example.com/x"
			g.Spec.SecretRef = &v1alpha1.LocalReference{Name: "git"}
		}, field.ErrorList{field.Invalid(url, "http://git.example.com/x", "")}},
		"branch":    {"git refuses it", withRef(v1alpha1.GitReference{Branch: "a..b"}), field.ErrorList{field.Invalid(ref.Child("branch"), "a..b", "")}},
		"dash":      {"git would take it for an option", withRef(v1alpha1.GitReference{Branch: "--upload-pack=x"}), field.ErrorList{field.Invalid(ref.Child("branch"), "--upload-pack=x", "")}},
		"tag":       {"git refuses it", withRef(v1alpha1.GitReference{Tag: "v 1"}), field.ErrorList{field.Invalid(ref.Child("tag"), "v 1", "")}},
		"name":      {"a reference is named in full", withRef(v1alpha1.GitReference{Name: "pull/1/head"}), field.ErrorList{field.Invalid(ref.Child("name"), "pull/1/head", "")}},
		"semver":    {"no range", withRef(v1alpha1.GitReference{SemVer: "newest"}), field.ErrorList{field.Invalid(ref.Child("semver"), "newest", "")}},
		"commit":    {"short hashes are ambiguous", withRef(v1alpha1.GitReference{Commit: "abc123"}), field.ErrorList{field.Invalid(ref.Child("commit"), "abc123", "")}},
		"absolute":  {"leaves the repository", withPath("/etc"), field.ErrorList{field.Invalid(path, "/etc", "")}},
		"dotdot":    {"leaves the repository", withPath("a/../../b"), field.ErrorList{field.Invalid(path, "a/../../b", "")}},
		"backslash": {"a separator elsewhere", withPath(`a\b`), field.ErrorList{field.Invalid(path, `a\b`, "")}},
		"interval":  {"would hammer the server", func(g *v1alpha1.GitSync) { g.Spec.Interval.Duration = time.Millisecond }, field.ErrorList{field.Invalid(spec.Child("interval"), "1ms", "")}},
		"timeout":   {"is over before it begins", func(g *v1alpha1.GitSync) { g.Spec.Timeout.Duration = -time.Second }, field.ErrorList{field.Invalid(spec.Child("timeout"), "-1s", "")}},
		"secret":    {"names nothing", func(g *v1alpha1.GitSync) { g.Spec.SecretRef = &v1alpha1.LocalReference{} }, field.ErrorList{field.Required(spec.Child("secretRef", "name"), "")}},
		"target":    {"no namespace can be called so", func(g *v1alpha1.GitSync) { g.Spec.TargetNamespace = "a.b" }, field.ErrorList{field.Invalid(spec.Child("targetNamespace"), "a.b", "")}},
		"account":   {"no ServiceAccount can be called so", func(g *v1alpha1.GitSync) { g.Spec.ServiceAccountName = "A" }, field.ErrorList{field.Invalid(spec.Child("serviceAccountName"), "A", "")}},
		"selector": {"In needs values", func(g *v1alpha1.GitSync) {
			g.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}
		}, field.ErrorList{field.Required(spec.Child("clusterSelector", "matchExpressions").Index(0).Child("values"), "")}},
		"metadata": {"no object can be called so", func(g *v1alpha1.GitSync) { g.Name = "Catalog" }, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), "Catalog", "")}},
		"all at once": {"a user fixes everything in one go", func(g *v1alpha1.GitSync) { g.Spec.URL = ""; g.Spec.Path = "/" },
			field.ErrorList{field.Required(url, ""), field.Invalid(path, "/", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateGitSync(gitSync(tc.change), nil), tc.reason)
		})
	}
}

func TestValidateGitSync_neverRepeatsASecret(t *testing.T) {
	for _, url := range []string{
		"https://me:hunter2@git.example.com/x", "http://me:hunter2@git.example.com/%zz", "ftp://me:hunter2@host/x", "ssh://git:hunter2@host/x",
	} {
		g := gitSync(withURL(url))
		g.Spec.SecretRef = &v1alpha1.LocalReference{Name: "git"}
		errs := validation.ValidateGitSync(g, nil)
		assert.NotEmpty(t, errs, url)
		assert.NotContains(t, errs.ToAggregate().Error(), "hunter2")
	}
}

func TestGitSyncWarnings(t *testing.T) {
	assert.Empty(t, validation.GitSyncWarnings(gitSync(nil)))
	assert.Empty(t, validation.GitSyncWarnings(gitSync(withRef(v1alpha1.GitReference{Branch: "main", Commit: "x"}))), "the branch says where the commit is")
	assert.Equal(t, []string{"spec.ref.tag has no effect: semver outranks it"},
		validation.GitSyncWarnings(gitSync(withRef(v1alpha1.GitReference{Tag: "v1", SemVer: "1.x"}))))
	assert.Len(t, validation.GitSyncWarnings(gitSync(withURL("http://git.example.com/x"))), 1, "not encrypted")
}

func FuzzValidateGitSync_pathStaysInside(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "/x", "a/../..", "./a", "..a", "a/..", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if len(validation.ValidateGitSync(gitSync(withPath(path)), nil)) > 0 {
			return
		}
		assert.True(t, staysInside(path), "accepted %q leaves its root", path)
	})
}
