package env

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C in a terminal reaches
// us first, and makes the kernel kill it when we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
