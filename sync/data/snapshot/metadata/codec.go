package metadata

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/expansion"
)

// Bounds of what is stored, and of what is unpacked.
const (
	// maxText is the length of the text of all objects.
	maxText = 128 << 20
	// maxValues is the number of values, keys included, of all objects: 400 MB in memory at the most.
	maxValues = 4_000_000
)

var (
	errTooLong = fmt.Errorf("more than %d MiB", maxText>>20)
	errDigest  = errors.New("their digest is another one than that of the snapshot")
)

// pack returns the compressed text of the objects, and its digest.
func pack(objects []*unstructured.Unstructured) (packed []byte, digest string, err error) {
	var out bytes.Buffer
	zip, sum := gzip.NewWriter(&out), sha256.New()
	size, values := 0, 0
	for _, o := range objects {
		line, err := encode(o)
		if err != nil {
			return nil, "", fmt.Errorf("encode %s %q: %w", o.GetKind(), o.GetName(), err)
		}
		more, err := expansion.JSONValues(line, maxValues)
		size, values = size+len(line), values+more
		if err != nil || values > maxValues || size > maxText {
			return nil, "", fmt.Errorf("%w: more than %d MiB, or %d values", ErrTooLarge, maxText>>20, maxValues)
		}
		sum.Write(line)
		if _, err := zip.Write(line); err != nil {
			return nil, "", fmt.Errorf("compress: %w", err)
		}
	}
	if err := zip.Close(); err != nil {
		return nil, "", fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), digestOf(sum.Sum(nil)), nil
}

// encode returns an object as one line.
func encode(o *unstructured.Unstructured) ([]byte, error) {
	content := maps.Clone(o.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		content["metadata"] = metadata
	}
	line, err := (&unstructured.Unstructured{Object: content}).MarshalJSON()
	return append(bytes.TrimRight(line, "\n"), '\n'), err
}

// unpack returns the objects of a compressed text that has the digest. It reads the text twice, so that
// nothing of one that has another digest is kept in memory.
func unpack(packed []byte, digest string) ([]*unstructured.Unstructured, error) {
	sum := sha256.New()
	text, err := open(packed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(sum, text); err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if digestOf(sum.Sum(nil)) != digest {
		return nil, errDigest
	}
	if text, err = open(packed); err != nil {
		return nil, err
	}
	return decode(text)
}

// open returns the text, which ends with an error where it exceeds a bound.
func open(packed []byte) (io.Reader, error) {
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return expansion.JSONReader(expansion.BytesReader(text, maxText, errTooLong), maxValues), nil
}

// decode returns the objects of a text within the bounds.
func decode(text io.Reader) ([]*unstructured.Unstructured, error) {
	lines := bufio.NewReader(text)
	var objects []*unstructured.Unstructured
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return objects, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the last line is cut off")
		case err != nil:
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(line); err != nil {
			return nil, fmt.Errorf("line %d holds no object", len(objects)+1) // without the text, which may be secret
		}
		objects = append(objects, o)
	}
}

func digestOf(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
