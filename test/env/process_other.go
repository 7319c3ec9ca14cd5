//go:build !linux

package env

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C in a
// terminal reaches us first. Only Linux can tie a child's life to its parent's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
