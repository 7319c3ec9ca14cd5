package inventory

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// maxChunk is the maximum size in bytes of the entries that one Secret holds, before
	// compression: even entries that do not compress at all keep the Secret far below the 500 KB
	// that none of our objects may exceed.
	maxChunk = 300 << 10

	// maxExpanded and maxValues are the maximum size of a chunk after decompression, in bytes and in
	// JSON values.
	maxExpanded = 1 << 20
	maxValues   = 100_000
)

// compressAll splits entries into chunks, each compressed by itself.
func compressAll(entries []v1alpha1.InventoryEntry) ([][]byte, error) {
	var chunks [][]byte
	for start, size, end := 0, 0, 0; start < len(entries); start, size = end, 0 {
		for end < len(entries) && (size <= maxChunk || end == start) {
			size += statusSize(entries[end : end+1])
			end++
		}
		chunk, err := compress(entries[start:end])
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, chunk)
	}
	return chunks, nil
}

// digestOf returns the digest of compressed chunks, as 64 hexadecimal digits.
func digestOf(chunks [][]byte) string {
	all := sha256.New()
	for _, chunk := range chunks {
		one := sha256.Sum256(chunk)
		all.Write(one[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

func compress(entries []v1alpha1.InventoryEntry) ([]byte, error) {
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	if err := json.NewEncoder(zip).Encode(entries); err != nil {
		return nil, fmt.Errorf("compress inventory: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("compress inventory: %w", err)
	}
	return buffer.Bytes(), nil
}

func decompress(data []byte) ([]v1alpha1.InventoryEntry, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("expand inventory: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxExpanded+1))
	if err != nil {
		return nil, fmt.Errorf("expand inventory: %w", err)
	}
	if len(text) > maxExpanded {
		return nil, fmt.Errorf("expand inventory: larger than %d bytes", maxExpanded)
	}
	if err := expansion.JSON(text, maxValues); err != nil {
		return nil, fmt.Errorf("expand inventory: %w", err)
	}
	var entries []v1alpha1.InventoryEntry
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("read inventory: %w", err)
	}
	return entries, nil
}
