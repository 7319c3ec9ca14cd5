//go:build !unix

package git

import "os"

// takeDirectory opens the file without locking it: on platforms without advisory locks, two
// processes must be given two directories.
func takeDirectory(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
