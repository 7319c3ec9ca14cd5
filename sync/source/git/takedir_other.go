//go:build !unix

package git

import "os"

// takeDirectory opens the file without locking it: where there are no advisory
// locks, whoever runs two processes must give them two directories.
func takeDirectory(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
