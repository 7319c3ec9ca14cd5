package validation

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

var (
	scpLike    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s-][^\s]*$`)
	commitHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	chartName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

const (
	plainGit        = "credentials are never sent over http: use https or ssh"
	plainHelm       = "credentials are never sent over http: use https or oci"
	plainRegistry   = "credentials are never sent over http: leave it out"
	noInlineSecrets = "must not contain credentials: store them in a Secret and name it"
)

// validateGitURL checks the address of a git repository: https, http, ssh, or git@host:path.
func validateGitURL(address string, credentials bool, path *field.Path) field.ErrorList {
	if address == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if scpLike.MatchString(address) {
		return nil
	}
	u, errs := parseURL(address, path, "https", "http", "ssh")
	if u == nil {
		return errs
	}
	if _, password := u.User.Password(); password || (u.User != nil && u.Scheme != "ssh") {
		errs = append(errs, field.Forbidden(path, noInlineSecrets))
	}
	if credentials && u.Scheme == "http" {
		errs = append(errs, field.Invalid(path, u.Redacted(), plainGit))
	}
	return errs
}

// validateHelmURL checks the address of a helm repository (https, http) or registry (oci).
func validateHelmURL(address string, credentials bool, path *field.Path) field.ErrorList {
	if address == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	u, errs := parseURL(address, path, "https", "http", "oci")
	if u == nil {
		return errs
	}
	if u.User != nil {
		errs = append(errs, field.Forbidden(path, noInlineSecrets))
	}
	if credentials && u.Scheme == "http" {
		errs = append(errs, field.Invalid(path, u.Redacted(), plainHelm))
	}
	return errs
}

// validateWebURL checks an optional link that is shown to people.
func validateWebURL(address string, path *field.Path) field.ErrorList {
	if address == "" {
		return nil
	}
	_, errs := parseURL(address, path, "https", "http")
	return errs
}

// parseURL returns nil with an error that never repeats a password.
func parseURL(address string, path *field.Path, schemes ...string) (*url.URL, field.ErrorList) {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsFunc(address, unicode.IsSpace) {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "is not a URL")}
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, field.ErrorList{field.Invalid(path, u.Redacted(),
			"must begin with one of "+strings.Join(schemes, "://, ")+"://")}
	}
	if u.Hostname() == "" {
		return nil, field.ErrorList{field.Invalid(path, u.Redacted(), "must name a host")}
	}
	return u, nil
}

// validateSourcePath checks a path within a repository: it never leaves it.
func validateSourcePath(p string, fld *field.Path) field.ErrorList {
	switch {
	case path.IsAbs(p):
		return field.ErrorList{field.Invalid(fld, p, "must be relative to the root of the repository")}
	case strings.ContainsFunc(p, unicode.IsControl) || strings.Contains(p, `\`):
		return field.ErrorList{field.Invalid(fld, p, "must not contain backslashes or control characters")}
	case slices.Contains(strings.Split(p, "/"), ".."):
		return field.ErrorList{field.Invalid(fld, p, "must not contain `..`")}
	}
	return nil
}

// validateGitReference checks every field that is set, also those that another one outranks.
func validateGitReference(r *v1alpha1.GitReference, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(child, value string, name plumbing.ReferenceName) {
		if value != "" && name.Validate() != nil {
			errs = append(errs, field.Invalid(path.Child(child), value, "is not a valid name of a git reference"))
		}
	}
	check("branch", r.Branch, plumbing.NewBranchReferenceName(r.Branch))
	check("tag", r.Tag, plumbing.NewTagReferenceName(r.Tag))
	check("name", r.Name, plumbing.ReferenceName(r.Name))
	if r.Name != "" && r.Name != "HEAD" && !strings.HasPrefix(r.Name, "refs/") {
		errs = append(errs, field.Invalid(path.Child("name"), r.Name, "must be HEAD or begin with refs/"))
	}
	if r.SemVer != "" {
		if _, err := semver.NewConstraint(r.SemVer); err != nil {
			errs = append(errs, field.Invalid(path.Child("semver"), r.SemVer, "is not a range of semantic versions"))
		}
	}
	if r.Commit != "" && !commitHash.MatchString(r.Commit) {
		errs = append(errs, field.Invalid(path.Child("commit"), r.Commit, "must be a full hash in lower case"))
	}
	return errs
}

// gitReferenceWarnings names the fields that have no effect, as others outrank them.
func gitReferenceWarnings(r *v1alpha1.GitReference, path *field.Path) []string {
	if r == nil {
		return nil
	}
	ranked := []struct{ child, value string }{
		{"commit", r.Commit}, {"name", r.Name}, {"semver", r.SemVer}, {"tag", r.Tag}, {"branch", r.Branch},
	}
	var warnings []string
	first := ""
	for _, f := range ranked {
		switch {
		case f.value == "":
		case first == "":
			first = f.child
		case first == "commit" && f.child == "branch": // says where the commit is found
		default:
			warnings = append(warnings, path.Child(f.child).String()+" has no effect: "+first+" outranks it")
		}
	}
	return warnings
}

func validateHelmSource(s *v1alpha1.HelmSource, path *field.Path) field.ErrorList {
	errs := validateHelmURL(s.URL, s.Credentials != nil, path.Child("url"))
	name := path.Child("chartName")
	switch {
	case s.ChartName == "":
		errs = append(errs, field.Required(name, ""))
	case !chartName.MatchString(s.ChartName):
		errs = append(errs, field.Invalid(name, s.ChartName, "must be the bare name of a chart; folders of a registry belong into the url"))
	}
	errs = append(errs, validateChartVersion(s.ChartVersion, path.Child("chartVersion"))...)
	if s.PlainHTTP && !strings.HasPrefix(s.URL, "oci://") {
		errs = append(errs, field.Invalid(path.Child("plainHTTP"), true, "is for oci:// only"))
	} else if s.PlainHTTP && s.Credentials != nil {
		errs = append(errs, field.Invalid(path.Child("plainHTTP"), true, plainRegistry))
	}
	errs = append(errs, validateCredentials(s.Credentials, path.Child("credentials"))...)
	if s.CASecretRef != nil {
		errs = append(errs, validateObjectName(s.CASecretRef.Name, path.Child("caSecretRef", "name"))...)
	}
	return errs
}

// validateChartVersion wants one version, not a range: what is installed is what was reviewed.
func validateChartVersion(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err != nil {
		return field.ErrorList{field.Invalid(path, version, "must be one exact semantic version, such as 1.2.3")}
	}
	return nil
}

func validateGitSource(s *v1alpha1.GitSource, path *field.Path) field.ErrorList {
	errs := validateGitURL(s.Remote, s.Credentials != nil, path.Child("remote"))
	errs = append(errs, validateGitReference(s.Ref, path.Child("ref"))...)
	errs = append(errs, validateSourcePath(s.Path, path.Child("path"))...)
	return append(errs, validateCredentials(s.Credentials, path.Child("credentials"))...)
}

func validateCredentials(c *v1alpha1.SourceCredentials, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	return validateObjectName(c.SecretRef.Name, path.Child("secretRef", "name"))
}
