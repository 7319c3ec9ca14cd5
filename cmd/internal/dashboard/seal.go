package dashboard

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// minKeyLength is how many characters a key has at least: 32 random bytes are 43 in base64.
	minKeyLength = 32
	// readKeysAgain is how long keys are used until their file is read again.
	readKeysAgain = time.Minute
	// maxCookie is how much of a cookie browsers keep, with its name and attributes.
	maxCookie = 4000
)

var errNotSealed = errors.New("not sealed by this dashboard, or changed since")

// seals makes of values texts that only those who have the key can read or make. The file of keys has one on each line: the
// first seals, and all open. So a key is replaced by putting another in front of it, and removing it later.
type seals struct {
	file string

	mu   sync.Mutex
	keys []cipher.AEAD
	read time.Time
}

// newSeals returns the seals by a file of keys, which has to be there.
func newSeals(file string) (*seals, error) {
	s := &seals{file: file}
	_, err := s.current()
	return s, err
}

// current returns the keys, the first to seal with. Those that were read before are used as long as the file cannot be.
func (s *seals) current() ([]cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) < readKeysAgain {
		return s.keys, nil
	}
	keys, err := readKeys(s.file)
	if err != nil && s.keys == nil {
		return nil, err
	}
	if err == nil {
		s.keys = keys
	}
	s.read = time.Now()
	return s.keys, nil
}

func readKeys(file string) ([]cipher.AEAD, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", err)
	}
	var keys []cipher.AEAD
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) < minKeyLength {
			return nil, fmt.Errorf("read session keys: %s: a key has less than %d characters", file, minKeyLength)
		}
		secret, err := hkdf.Key(sha256.New, []byte(line), nil, "waybill-dashboard sessions", 32)
		if err != nil {
			return nil, fmt.Errorf("read session keys: %w", err)
		}
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, fmt.Errorf("read session keys: %w", err)
		}
		key, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("read session keys: %w", err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("read session keys: %s has none: write random characters into it, at least %d", file, minKeyLength)
	}
	return keys, nil
}

// seal returns a value sealed for a purpose.
func (s *seals) seal(purpose string, value any) (string, error) {
	keys, err := s.current()
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(keys[0].Seal(nil, nil, content, []byte(purpose))), nil
}

// open reads a value that was sealed for the purpose.
func (s *seals) open(purpose, sealed string, into any) error {
	keys, err := s.current()
	if err != nil {
		return err
	}
	content, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(sealed) > maxCookie {
		return errNotSealed
	}
	for _, key := range keys {
		if opened, err := key.Open(nil, nil, content, []byte(purpose)); err == nil {
			return json.Unmarshal(opened, into)
		}
	}
	return errNotSealed
}
