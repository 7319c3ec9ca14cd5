//go:build unix

package git

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// takeDirectory locks the file for as long as it is open, whatever happens to
// the process.
func takeDirectory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another process uses the directory")
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
