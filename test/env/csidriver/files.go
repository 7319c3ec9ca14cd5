package csidriver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// folderCopy is one folder to copy to a place where nothing is yet.
type folderCopy struct{ from, to string }

// do copies everything in the folder with owners, modes and times. Blocks are shared with the original
// where the file system can do that. Nothing has the final name before it is whole.
func (c folderCopy) do() error {
	unfinished := c.to + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove unfinished copy: %w", err)
	}
	out, err := exec.Command("cp", "--archive", "--reflink=auto", "--no-target-directory", c.from, unfinished).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("copy %s: %w: %s", c.from, err, out), os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, c.to)
}
