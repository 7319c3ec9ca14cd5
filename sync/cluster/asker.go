package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxProbeAnswer bounds how many bytes of an answer a probe reads.
const maxProbeAnswer = 256 << 10

// asker asks an API server about itself, past the breaker.
type asker struct {
	client   *http.Client
	url      string
	answered *atomic.Int64 // when the server last answered anything, in Unix nanoseconds
}

// ready checks whether the API server can serve. An answer that refuses only us still means that
// the server answers.
func (a *asker) ready(ctx context.Context) error { return a.get(ctx, "/readyz", nil) }

// identity is what a cluster reports about itself.
type identity struct {
	version string
	uid     string
}

// validUID matches what Kubernetes uses for UIDs, and what others use that are no UUIDs.
var validUID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// identify reads the version of the API server and the UID of namespace kube-system, which
// identifies the cluster.
func (a *asker) identify(ctx context.Context) (identity, error) {
	var id identity
	version, err := a.version(ctx)
	if err != nil {
		return id, err
	}
	namespace := metav1.PartialObjectMetadata{}
	if err := a.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, &namespace); err != nil {
		return id, err
	}
	if !validUID.MatchString(string(namespace.UID)) { // it is written to the status, and into messages
		return id, fmt.Errorf("namespace %s has no valid UID: the server is not a Kubernetes API server", metav1.NamespaceSystem)
	}
	return identity{version: version, uid: string(namespace.UID)}, nil
}

func (a *asker) version(ctx context.Context) (string, error) {
	answer := struct {
		GitVersion string `json:"gitVersion"`
	}{}
	if err := a.get(ctx, "/version", &answer); err != nil {
		return "", err
	}
	const longest = 64
	return answer.GitVersion[:min(len(answer.GitVersion), longest)], nil
}

// selfPath is where an API server of Kubernetes 1.28 or later returns the user of the request.
const selfPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// self returns the user that the API server takes us for.
func (a *asker) self(ctx context.Context) (authenticationv1.UserInfo, error) {
	review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{
		APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview",
	}}
	body, err := json.Marshal(review)
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("encode %s: %w", review.Kind, err)
	}
	if err := a.do(ctx, http.MethodPost, selfPath, body, &review); err != nil {
		return authenticationv1.UserInfo{}, err
	}
	if review.Status.UserInfo.Username == "" {
		return authenticationv1.UserInfo{}, fmt.Errorf("the response to %s names no user", selfPath)
	}
	return review.Status.UserInfo, nil
}

// credentialID is the one key of a user's extra that distinguishes the credentials of one user.
const credentialID = "authentication.kubernetes.io/credential-id"

// sameUser reports whether a and b are the same user: they differ in the ID of the credential at most.
func sameUser(a, b authenticationv1.UserInfo) bool {
	for _, u := range []*authenticationv1.UserInfo{&a, &b} {
		u.Groups = slices.Compact(slices.Sorted(slices.Values(u.Groups)))
		u.Extra = maps.Clone(u.Extra)
		delete(u.Extra, credentialID)
	}
	return a.Username == b.Username && a.UID == b.UID && slices.Equal(a.Groups, b.Groups) &&
		maps.EqualFunc(a.Extra, b.Extra, func(x, y authenticationv1.ExtraValue) bool { return slices.Equal(x, y) })
}

// get requests a path, and decodes the answer unless into is nil.
func (a *asker) get(ctx context.Context, path string, into any) error {
	return a.do(ctx, http.MethodGet, path, nil, into)
}

// do sends a request, and decodes the answer unless into is nil.
func (a *asker) do(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	req.Header.Set("Accept", "application/json, */*")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	a.answered.Store(time.Now().UnixNano())
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{path: path, code: resp.StatusCode}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the response to %s is not valid Kubernetes JSON", path)
	}
	return nil
}
