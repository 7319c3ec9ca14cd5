package release

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

// Helm keeps a release in a Secret of this type, under this key, with labels to find it by.
const (
	recordType = "helm.sh/release.v1"
	recordKey  = "release"

	labelName     = "name"
	labelOwner    = "owner"
	labelStatus   = "status"
	labelVersion  = "version"
	labelCreated  = "createdAt"
	labelModified = "modifiedAt"

	// recordOwner is the value of labelOwner.
	recordOwner = "helm"
)

// fastCompression takes a quarter of the time of the best compression, for a record that is a
// twentieth larger. Helm uses the best, which is more than half of the time that an install takes.
const fastCompression = 4

// encode returns the Secret of a release as Helm's own driver writes it. stamp is the label that
// holds the time.
func encode(key string, r *helmrelease.Release, stamp string, id Identity) (*corev1.Secret, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	packed, err := pack(data, fastPackers)
	if err == nil && len(packed) > corev1.MaxSecretSize {
		packed, err = pack(data, bestPackers)
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	maps.Copy(labels, map[string]string{
		labelName:    r.Name,
		labelOwner:   recordOwner,
		labelStatus:  r.Info.Status.String(),
		labelVersion: strconv.Itoa(r.Version),
		stamp:        strconv.FormatInt(time.Now().Unix(), 10),
	})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        key,
			Labels:      labels,
			Annotations: map[string]string{v1alpha1.OwnerAnnotation: id.Owner},
		},
		Type: recordType,
		Data: map[string][]byte{recordKey: packed},
	}, nil
}

// fastPackers and bestPackers are used again and again: a new one takes most of a megabyte, many times
// as much as the record of a usual release.
var fastPackers, bestPackers = packers(fastCompression), packers(gzip.BestCompression)

func packers(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic(err) // there is no such level
		}
		return w
	}}
}

func pack(data []byte, pool *sync.Pool) ([]byte, error) {
	w := pool.Get().(*gzip.Writer)
	defer func() {
		w.Reset(io.Discard) // not to keep the record
		pool.Put(w)
	}()
	var packed bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &packed)
	w.Reset(text)
	_, err := w.Write(data)
	err = errors.Join(err, w.Close(), text.Close())
	return packed.Bytes(), err
}

// storedDigest returns the digest of the bytes of a record, as 64 hexadecimal digits.
func storedDigest(secret *corev1.Secret) string {
	sum := sha256.Sum256(secret.Data[recordKey])
	return hex.EncodeToString(sum[:])
}

// unpacked bounds what a record may unpack to. It holds the chart, the values and all manifests.
type unpacked struct {
	bytes int64
	// values of the JSON; zero stands for any number.
	values int
}

// own bounds a record whose bytes are those that Waybill stored.
var own = unpacked{bytes: 128 << 20}

// decode reads a release from the Secret that Helm keeps it in: JSON, compressed, in base64. Helm's
// own driver takes the whole process down over a damaged record.
func decode(secret *corev1.Secret, most unpacked) (*helmrelease.Release, error) {
	data, err := base64.StdEncoding.DecodeString(string(secret.Data[recordKey]))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var r io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	r = expansion.BytesReader(r, most.bytes, fmt.Errorf("it unpacks to more than %d bytes", most.bytes))
	if most.values > 0 {
		r = expansion.JSONReader(r, most.values)
	}
	var found helmrelease.Release
	if err := json.NewDecoder(r).Decode(&found); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if found.Info == nil || found.Version < 1 {
		return nil, errors.New("decode: contains no release")
	}
	found.Labels = ownLabels(secret)
	return &found, nil
}

// ownLabels returns the labels of a record that are not set by Helm.
func ownLabels(secret *corev1.Secret) map[string]string {
	labels := maps.Clone(secret.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(driver.GetSystemLabels(), key) })
	return labels
}
