package kubelet

import (
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilexec "k8s.io/utils/exec"

	"waybill.dev/waybill/test/env"
)

// outputGrace is how long a command's own children may keep its output open after it has ended.
const outputGrace = time.Second

// command is a process that runs in a container. Its children are in its process group, and end with it.
type command struct {
	pod       types.UID
	container string
	folders   []string // of the volumes that it can write to, sorted

	mu     sync.Mutex
	group  int // 0 when it does not run
	pauses int // how many want it stopped
}

// streams are those of the caller; any may be nil.
type streams struct {
	in       io.Reader
	out, err io.WriteCloser
}

// run runs a command until it ends and returns how it ended, as remotecommand wants it.
func (k *Kubelet) run(c *command, cmd *exec.Cmd, s streams) error {
	if s.out != nil {
		cmd.Stdout = &lossy{w: s.out}
	}
	if s.err != nil {
		cmd.Stderr = &lossy{w: s.err}
	}
	cmd.WaitDelay = outputGrace
	var in io.WriteCloser
	if s.in != nil {
		var err error
		if in, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := k.begin(c, cmd); err != nil {
		return err
	}
	if in != nil {
		go func() {
			_, _ = io.Copy(in, s.in) // ends with either side
			_ = in.Close()
		}()
	}
	err := cmd.Wait()
	k.end(c)
	return outcome(cmd, err)
}

// begin starts a command, unless its volumes are being copied: then it waits.
func (k *Kubelet) begin(c *command, cmd *exec.Cmd) error {
	unlock := k.lock(c.folders, (*sync.RWMutex).RLock, (*sync.RWMutex).RUnlock)
	defer unlock()
	if err := env.StartChild(cmd); err != nil {
		return err
	}
	c.mu.Lock()
	c.group = cmd.Process.Pid
	c.mu.Unlock()
	k.mu.Lock()
	k.running[c] = true
	k.mu.Unlock()
	select {
	case <-k.stop:
		c.signal(syscall.SIGKILL)
	default:
	}
	return nil
}

// end kills what the command left behind, and forgets it.
func (k *Kubelet) end(c *command) {
	c.signal(syscall.SIGKILL)
	c.mu.Lock()
	c.group = 0
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.running, c)
}

// kill ends the chosen commands as the end of their container does.
func (k *Kubelet) kill(which func(*command) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.running {
		if which(c) {
			c.signal(syscall.SIGKILL)
		}
	}
}

// signal reaches the command and its children. It does nothing if the command has ended.
func (c *command) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(s)
}

// send is signal for who holds the lock.
func (c *command) send(s syscall.Signal) {
	if c.group != 0 {
		_ = syscall.Kill(-c.group, s) // fails only if all have ended
	}
}

// outcome returns the exit codes that a shell knows.
func outcome(cmd *exec.Cmd, err error) error {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		return err
	}
	code := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: err, Code: code}
}

// lossy writes until that fails, and then drops everything: a command does not end because no client reads
// what it says.
type lossy struct {
	w      io.Writer
	failed bool
}

func (l *lossy) Write(p []byte) (int, error) {
	if !l.failed {
		_, err := l.w.Write(p)
		l.failed = err != nil
	}
	return len(p), nil
}
