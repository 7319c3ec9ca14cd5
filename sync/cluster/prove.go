package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// proofPath is where a proof is written. A client that may read or write Secrets there can do
	// everything in the cluster, so a server cannot pretend to be a cluster in which it has no rights.
	proofPath = "/api/v1/namespaces/" + metav1.NamespaceSystem + "/secrets"
	// proofKey is the key in the Secret of a value that no other client can know.
	proofKey = "nonce"
	// forgetTimeout bounds the deletion of a proof.
	forgetTimeout = 5 * time.Second
)

// ErrAnotherCluster means that two configurations lead to two clusters.
var ErrAnotherCluster = errors.New("a Secret that was written through the one to namespace " + metav1.NamespaceSystem +
	" is not found through the other, so that they are two clusters")

// ProofError says through which of two configurations something could not be asked.
type ProofError struct {
	// Incumbent is true for the second one.
	Incumbent bool
	Err       error
	// proof is the name of the Secret, which is another one at each attempt.
	proof string
}

// Error says what failed, without what changes from one attempt to the next.
func (e *ProofError) Error() string {
	what := "create"
	if e.Incumbent {
		what = "get"
	}
	var status *statusError
	if errors.As(e.Err, &status) {
		return fmt.Sprintf("cannot %s a Secret in namespace %s: the API server answers with %d %s",
			what, metav1.NamespaceSystem, status.code, http.StatusText(status.code))
	}
	return fmt.Sprintf("cannot %s a Secret in namespace %s: %s", what, metav1.NamespaceSystem,
		strings.ReplaceAll(describe(e.Err), "/"+e.proof, ""))
}

// Unwrap returns the cause.
func (e *ProofError) Unwrap() error { return e.Err }

// Prove returns nil if both configurations lead to one cluster: what is written through claimant is
// read through incumbent. It leaves nothing behind in the cluster. The error is ErrAnotherCluster if
// they do not, and a *ProofError if that is not known. What a server reports about itself proves
// nothing: it may report anything.
func (r *Registry) Prove(ctx context.Context, claimant, incumbent *rest.Config) error {
	writer, err := newLink(r.own(claimant), r.options, func() {}, func(error) {})
	if err != nil {
		return &ProofError{Err: err}
	}
	defer writer.end(ErrNotEngaged)
	reader, err := newLink(r.own(incumbent), r.options, func() {}, func(error) {})
	if err != nil {
		return &ProofError{Incumbent: true, Err: err}
	}
	defer reader.end(ErrNotEngaged)
	proof := newProof()
	body, err := json.Marshal(proof)
	if err != nil {
		return fmt.Errorf("encode Secret: %w", err)
	}
	err = writer.do(ctx, http.MethodPost, proofPath, body, nil)
	if isAnswer(err) {
		return &ProofError{Err: err}
	}
	defer r.dropProof(ctx, writer, proof.Name) // also where the answer was lost
	if err != nil {
		return &ProofError{Err: err}
	}
	return compareProof(ctx, reader, proof)
}

// newProof returns a Secret with an unguessable name and content.
func newProof() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "waybill-proof-" + unguessable(8)},
		Data:       map[string][]byte{proofKey: []byte(unguessable(32))},
	}
}

func unguessable(length int) string {
	b := make([]byte, length)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// compareProof reads a proof that was written through another link.
func compareProof(ctx context.Context, reader *link, proof *corev1.Secret) error {
	found := corev1.Secret{}
	err := reader.get(ctx, proofPath+"/"+proof.Name, &found)
	var status *statusError
	switch {
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return ErrAnotherCluster
	case err != nil:
		return &ProofError{Incumbent: true, Err: err, proof: proof.Name}
	case string(found.Data[proofKey]) != string(proof.Data[proofKey]):
		return ErrAnotherCluster
	}
	return nil
}

// dropProof deletes a proof.
func (r *Registry) dropProof(ctx context.Context, writer *link, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	err := writer.do(ctx, http.MethodDelete, proofPath+"/"+name, nil, nil)
	var status *statusError
	if err != nil && (!errors.As(err, &status) || status.code != http.StatusNotFound) {
		r.options.Log.Info("cannot delete the Secret that proved which cluster it is: delete it", "namespace", metav1.NamespaceSystem, "name", name, "reason", describe(err))
	}
}

// Identify returns the UID that the API server of a configuration reports for namespace kube-system.
func (r *Registry) Identify(ctx context.Context, config *rest.Config) (string, error) {
	l, err := newLink(r.own(config), r.options, func() {}, func(error) {})
	if err != nil {
		return "", err
	}
	defer l.end(ErrNotEngaged)
	id, err := l.identify(ctx)
	if err != nil {
		return "", errors.New(describe(err))
	}
	return id.uid, nil
}
