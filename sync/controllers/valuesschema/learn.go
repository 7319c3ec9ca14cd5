package valuesschema

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values/schema"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/sync/source/subscription"
)

// fetchTimeout bounds the fetch of one chart.
const fetchTimeout = 2 * time.Minute

// maxMessage is the length of the message that a status takes.
const maxMessage = 512

// learn asks for the chart of each version that is not known, and returns what is known of the others. asking
// says that one is being asked for.
func (r *Reconciler) learn(ctx context.Context, definition *v1alpha1.ApplicationDefinition, s *session) (known []v1alpha1.ValuesSchema, asking bool) {
	asked := map[string]bool{}
	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		from := sourceOf(definition, version)
		if from == nil {
			continue
		}
		source := identify(from)
		if entry := s.known(definition, version.Version, source); entry != nil {
			known = append(known, *entry)
			continue
		}
		asked[version.Version] = true
		state, got := r.chart(definition, s, version.Version).Set(subscription.Question[learned]{
			ID: source + r.credentialsID(ctx, from), Server: address(from), Lacking: true, Ask: func(jobCtx context.Context) (learned, error) {
				got, err := r.fetch(jobCtx, version.Version, from)
				if err != nil {
					ctrl.LoggerFrom(ctx).Info("values are not checked at admission: cannot read the chart, will try again",
						"version", version.Version, "error", err.Error())
				}
				return got, err
			},
		})
		asking = asking || state.Phase == subscription.Asking
		if got != nil {
			s.learned[version.Version] = *got
			known = append(known, got.entry)
		}
	}
	s.rest(asked)
	return known, asking
}

// credentialsID stands for what the Secrets of a source hold: with other credentials, the source may answer at once.
func (r *Reconciler) credentialsID(ctx context.Context, from *v1alpha1.ApplicationSource) string {
	var id strings.Builder
	for _, name := range from.GetSecrets() {
		secret, err := r.secret(ctx, name)
		if err != nil {
			id.WriteString(" none")
			continue
		}
		_, annotated := secret.Annotations[v1alpha1.SecretTypeAnnotation]
		fmt.Fprintf(&id, " %s/%t", secret.Hash, annotated)
	}
	return id.String()
}

// chart returns the subscription to the chart of a version.
func (r *Reconciler) chart(definition *v1alpha1.ApplicationDefinition, s *session, version string) *subscription.Subscription[key, learned] {
	if s.charts[version] == nil {
		s.charts[version] = ptr.To(r.charts.New(keyOf(definition, version)))
	}
	return s.charts[version]
}

// sourceOf returns the source of a version's chart, if the schema of its values does not change; nil if it may.
func sourceOf(definition *v1alpha1.ApplicationDefinition, version *v1alpha1.ApplicationVersion) *v1alpha1.ApplicationSource {
	if definition.GetMethod() != v1alpha1.MethodHelm || version.Template == nil {
		return nil
	}
	source := &version.Template.Source
	if from := source.Git; from != nil && (from.Ref == nil || from.Ref.Commit == "") {
		return nil
	}
	if source.Helm == nil && source.Git == nil {
		return nil
	}
	return source
}

// address identifies the server of a source, so that jobs that contact the same one share a lane.
func address(from *v1alpha1.ApplicationSource) string {
	if from.Helm != nil {
		return from.Helm.URL
	}
	return from.Git.Remote
}

// identify returns what stands for a chart of a source.
func identify(from *v1alpha1.ApplicationSource) string {
	var parts []string
	if helm := from.Helm; helm != nil {
		parts = []string{helm.URL, helm.ChartName, helm.ChartVersion}
	} else {
		parts = []string{"git", from.Git.Remote, from.Git.Ref.Commit, from.Git.Path}
	}
	text, _ := json.Marshal(parts) // strings cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// known returns what is known of a version with that source; nil if it has to be learned.
func (s *session) known(definition *v1alpha1.ApplicationDefinition, version, source string) *v1alpha1.ValuesSchema {
	if got, ok := s.learned[version]; ok && got.entry.Source == source {
		return &got.entry
	}
	entry := definition.GetValuesSchema(version)
	if entry == nil || entry.Source != source || entry.Digest != "" && !s.stored[entry.Digest] {
		return nil
	}
	return entry
}

// fetch reads the schema of a chart.
func (r *Reconciler) fetch(ctx context.Context, version string, from *v1alpha1.ApplicationSource) (learned, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	get := r.fromGit
	if from.Helm != nil {
		get = r.fromRepository
	}
	got, err := get(ctx, from)
	if err != nil {
		return learned{}, err
	}
	return read(helm.Schemas(got.Chart), v1alpha1.ValuesSchema{Version: version, Source: identify(from)}), nil
}

// fromRepository fetches a chart from a Helm repository or a registry.
func (r *Reconciler) fromRepository(ctx context.Context, source *v1alpha1.ApplicationSource) (*chart.Chart, error) {
	from := source.Helm
	credentials, err := r.credentials(ctx, from)
	if err != nil {
		return nil, err
	}
	return r.Charts.Get(ctx, chart.Reference{URL: from.URL, Name: from.ChartName, Version: from.ChartVersion}, credentials)
}

// fromGit loads a chart from a folder of a repository, at a commit.
func (r *Reconciler) fromGit(ctx context.Context, source *v1alpha1.ApplicationSource) (*chart.Chart, error) {
	from := source.Git
	repository, revision := git.Repository{URL: from.Remote}, from.Remote+"@"+from.Ref.Commit
	if from.Credentials != nil {
		secret, err := r.annotated(ctx, from.Credentials)
		if err != nil {
			return nil, err
		}
		if repository.Credentials, err = git.CredentialsFromSecret(secret.Data); err != nil {
			return nil, err
		}
		revision += " with " + secret.Hash
	}
	open := func(ctx context.Context) (fs.FS, func(), error) {
		resolved, err := r.Git.Resolve(ctx, repository, git.RefOf(from.Ref))
		if err != nil {
			return nil, nil, err
		}
		tree, err := r.Git.Open(ctx, repository, resolved)
		if err != nil {
			return nil, nil, err
		}
		root, err := tree.FS("")
		if err != nil {
			tree.Close()
			return nil, nil, err
		}
		return root, tree.Close, nil
	}
	return r.Charts.FromFS(ctx, chart.Tree{Open: open, Path: from.Path, Revision: revision}, chart.Credentials{})
}

// read packs a schema, if it can be checked.
func read(bundle *schema.Bundle, entry v1alpha1.ValuesSchema) learned {
	if bundle.Empty() {
		return learned{entry: entry}
	}
	encoded, err := bundle.Encode()
	if err == nil {
		_, err = schema.Compile(encoded)
	}
	var packed []byte
	if err == nil {
		packed, err = schema.Pack(encoded)
	}
	if err != nil {
		entry.Message = excerpt.Of("values are checked only when the chart is rendered: "+err.Error(), maxMessage)
		return learned{entry: entry}
	}
	entry.Digest = schema.Digest(encoded)
	return learned{entry: entry, packed: packed}
}

// errNotAnnotated says that a Secret is not for sources.
var errNotAnnotated = errors.New("the Secret lacks the annotation " + v1alpha1.SecretTypeAnnotation)

// credentials reads the Secrets that a source names, as those who install from it do.
func (r *Reconciler) credentials(ctx context.Context, from *v1alpha1.HelmSource) (chart.Credentials, error) {
	var credentials chart.Credentials
	if from.Credentials != nil {
		secret, err := r.annotated(ctx, from.Credentials)
		if err != nil {
			return credentials, err
		}
		if credentials, err = chart.CredentialsFromSecret(secret.Data); err != nil {
			return credentials, err
		}
	}
	if from.CASecretRef != nil {
		secret, err := r.secret(ctx, from.CASecretRef.Name)
		if err != nil {
			return credentials, err
		}
		if credentials.CAFile, err = chart.AuthoritiesFromSecret(secret.Data); err != nil {
			return credentials, err
		}
	}
	credentials.PlainHTTP, credentials.InsecureSkipTLS = from.PlainHTTP, from.InsecureSkipTLS
	return credentials, nil
}

// annotated reads the Secret with the credentials of a source.
func (r *Reconciler) annotated(ctx context.Context, from *v1alpha1.SourceCredentials) (*content.Content, error) {
	secret, err := r.secret(ctx, from.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	if _, ok := secret.Annotations[v1alpha1.SecretTypeAnnotation]; !ok {
		return nil, errNotAnnotated
	}
	return secret, nil
}

func (r *Reconciler) secret(ctx context.Context, name string) (*content.Content, error) {
	return r.Secrets.Get(ctx, content.Secret, types.NamespacedName{Namespace: r.SystemNamespace, Name: name})
}
