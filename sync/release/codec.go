package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
)

// maxRecordBytes bounds what a record may unpack to. It holds the chart, the values and all manifests.
const maxRecordBytes = 128 << 20

// decode reads a release out of the Secret that Helm keeps it in: JSON, compressed, in base64. Helm's own driver takes the
// whole process down over a record that is damaged.
func decode(secret *corev1.Secret) (*helmrelease.Release, error) {
	data, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var r io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	var found helmrelease.Release
	if err := json.NewDecoder(io.LimitReader(r, maxRecordBytes)).Decode(&found); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if found.Info == nil || found.Version < 1 {
		return nil, errors.New("decode: holds no release")
	}
	found.Labels = maps.Clone(secret.Labels)
	maps.DeleteFunc(found.Labels, func(key, _ string) bool { return slices.Contains(driver.GetSystemLabels(), key) })
	return &found, nil
}
