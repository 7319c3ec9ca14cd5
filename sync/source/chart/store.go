package chart

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// store keeps archives on disk by digest, and remembers which reference, seen with which
// credentials, led to which archive.
//
//	archives/<hex sha256>   an archive
//	references/<key>        the digest that a key led to
//	secret                  used to derive keys, so that they reveal nothing about the credentials
type store struct {
	dir    string
	limit  int64
	secret []byte
	// mu is held while archives are removed, and while one is looked up and marked as used.
	mu sync.Mutex
}

const (
	archivesDir   = "archives"
	referencesDir = "references"
	secretFile    = "secret"
	tempPattern   = "incoming-*"

	// staleTemp is the age at which a file that is being written is considered left behind.
	staleTemp = 10 * fetchTimeout
)

func openStore(dir string, limit int64) (*store, error) {
	s := &store{dir: dir, limit: limit}
	for _, sub := range []string{archivesDir, referencesDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, tempPattern))
	if err != nil {
		return nil, err
	}
	for _, file := range left {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = os.Remove(file)
		}
	}
	return s, s.loadSecret()
}

func (s *store) loadSecret() error {
	file := filepath.Join(s.dir, secretFile)
	secret, err := os.ReadFile(file)
	if err == nil && len(secret) == sha256.Size {
		s.secret = secret
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.secret = make([]byte, sha256.Size)
	if _, err := rand.Read(s.secret); err != nil {
		return err
	}
	return s.writeFile(file, s.secret)
}

// key identifies what, of the given kind, as seen with cred.
func (s *store) key(kind, what string, cred Credentials) string {
	mac := hmac.New(sha256.New, s.secret)
	credHash := cred.hash()
	sum := hashOf([]byte(kind), []byte(what), credHash[:])
	mac.Write(sum[:])
	return hex.EncodeToString(mac.Sum(nil))
}

// lookup returns the digest that key led to, if the archive is still there.
func (s *store) lookup(key string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(s.dir, referencesDir, key))
	if err != nil {
		return "", false
	}
	digest := string(data)
	return digest, s.has(digest)
}

// link remembers that key leads to digest.
func (s *store) link(key, digest string) error {
	if err := s.writeFile(filepath.Join(s.dir, referencesDir, key), []byte(digest)); err != nil {
		return fmt.Errorf("write chart cache: %w", err)
	}
	return nil
}

// has reports whether the archive is there, and marks it as used.
func (s *store) has(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := s.archive(digest)
	if err != nil {
		return false
	}
	now := time.Now()
	return os.Chtimes(file, now, now) == nil
}

// digestForm is what a digest must look like to become the name of a file: registries name theirs,
// and files on disk may be damaged.
var digestForm = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// archive returns the path of the archive with that digest.
func (s *store) archive(digest string) (string, error) {
	encoded := digestForm.FindStringSubmatch(digest)
	if encoded == nil {
		return "", fmt.Errorf("%w: digest of the archive is not a SHA-256 digest in lower case", ErrInvalidChart)
	}
	return filepath.Join(s.dir, archivesDir, encoded[1]), nil
}

// spool writes what r yields to a file of its own, and returns it with the hash of its content. The
// caller must call discard.
func (s *store) spool(r io.Reader) (*os.File, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	temp, err := os.CreateTemp(s.dir, tempPattern)
	if err != nil {
		return nil, none, fmt.Errorf("write chart cache: %w", err)
	}
	h := sha256.New()
	if _, err = io.Copy(io.MultiWriter(temp, h), r); err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	if err != nil {
		discard(temp)
		if !isOurs(err) {
			err = fmt.Errorf("write chart cache: %w", err)
		}
		return nil, none, err
	}
	return temp, [sha256.Size]byte(h.Sum(nil)), nil
}

// discard removes a file that was spooled, unless it has got another name.
func discard(temp *os.File) {
	_ = temp.Close()
	_ = os.Remove(temp.Name())
}

// put stores what r yields and returns its digest. If wantHex is given, the hash must match it.
func (s *store) put(r io.Reader, wantHex string) (string, error) {
	temp, sum, err := s.spool(r)
	if err != nil {
		return "", err
	}
	defer discard(temp)
	got := hex.EncodeToString(sum[:])
	if wantHex != "" && !strings.EqualFold(got, wantHex) {
		return "", fmt.Errorf("%w: archive has the digest %s, and %s was announced", ErrInvalidChart, got, wantHex)
	}
	digest := "sha256:" + got
	file, err := s.archive(digest)
	if err != nil {
		return "", err
	}
	if err = temp.Close(); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return "", fmt.Errorf("write chart cache: %w", err)
	}
	return digest, s.evict(got)
}

// open returns the archive with that digest, after verifying it: disks forget too.
func (s *store) open(digest string) (io.ReadCloser, error) {
	file, err := s.archive(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: read chart cache: %w", ErrUnreachable, err)
	}
	h := sha256.New()
	if _, err = io.Copy(h, f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && "sha256:"+hex.EncodeToString(h.Sum(nil)) != digest {
		err = errors.New("archive on disk is damaged")
		_ = os.Remove(f.Name())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w: read chart cache: %w", ErrUnreachable, err)
	}
	return f, nil
}

// evict removes the least recently used archives until the rest fits; it never removes the one just
// stored.
func (s *store) evict(latest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(s.dir, archivesDir))
	if err != nil {
		return fmt.Errorf("read chart cache: %w", err)
	}
	var files []fs.FileInfo
	var total int64
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			files = append(files, info)
			total += info.Size()
		}
	}
	if total <= s.limit {
		return nil
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for _, info := range files {
		if total <= s.limit {
			break
		}
		if info.Name() != latest && os.Remove(filepath.Join(s.dir, archivesDir, info.Name())) == nil {
			total -= info.Size()
		}
	}
	return s.dropDeadReferences()
}

// dropDeadReferences removes references to archives that are gone.
func (s *store) dropDeadReferences() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, referencesDir))
	if err != nil {
		return fmt.Errorf("read chart cache: %w", err)
	}
	for _, entry := range entries {
		file := filepath.Join(s.dir, referencesDir, entry.Name())
		digest, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		archive, err := s.archive(string(digest))
		if err == nil {
			_, err = os.Stat(archive)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrInvalidChart) {
			_ = os.Remove(file)
		}
	}
	return nil
}

// writeFile writes a small file atomically: a reader sees all of it or nothing.
func (s *store) writeFile(name string, data []byte) error {
	temp, err := os.CreateTemp(s.dir, tempPattern)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
