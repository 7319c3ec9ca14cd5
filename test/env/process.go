package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Command defines what StartProcess runs.
type Command struct {
	// Name identifies the process in errors and names its log file. Required.
	Name string
	// Path is the executable. Required.
	Path string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is added to this process's environment, as KEY=value.
	Env []string
	// Output receives standard output and standard error in addition to the log file. Optional.
	Output io.Writer
}

// Process is a running child. StopAll kills it, as does the kernel when this process dies, for
// whatever reason.
type Process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	done    chan struct{}
	err     error // set before done is closed
}

// StartProcess starts a child and returns at once; the caller must wait until it is ready. It fails
// only if the executable cannot be started.
func StartProcess(c Command) (*Process, error) {
	dir, err := tempDir(c.Name)
	if err != nil {
		return nil, err
	}
	p, err := startIn(dir, c)
	if err != nil {
		return nil, err
	}
	forget := track(func() { _ = p.Kill() }) // fails only if it has ended
	go func() {
		<-p.done
		forget()
	}()
	return p, nil
}

// startIn starts c with its log file in dir. The caller must end it.
func startIn(dir string, c Command) (*Process, error) {
	p := &Process{name: c.Name, logPath: filepath.Join(dir, c.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create log of %s: %w", c.Name, err)
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if c.Output != nil {
		both := io.MultiWriter(log, c.Output)
		p.cmd.Stdout, p.cmd.Stderr = both, both
	}
	p.cmd.SysProcAttr = childAttributes()
	if err := spawn(p.cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), log.Close())
	}
	go p.wait(log)
	return p, nil
}

func (p *Process) wait(log io.Closer) {
	p.err = p.cmd.Wait()
	_ = log.Close()
	close(p.done)
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// PeakMemory returns the most memory that the process has had resident so far, in bytes, without that of
// its children. The kernel tells it on Linux only.
func (p *Process) PeakMemory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	match := peakLine.FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("read memory of %s: the kernel tells no VmHWM", p.name)
	}
	kilobytes, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kilobytes << 10, err
}

// Done returns a channel that is closed when the process has ended, however it ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended: nil for exit code 0. It is valid after Done is closed.
func (p *Process) Err() error { return p.err }

// Log returns the output of the process so far, of both streams.
func (p *Process) Log() (string, error) {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return "", fmt.Errorf("read log of %s: %w", p.name, err)
	}
	return string(b), nil
}

// Stop sends SIGTERM to the process and waits until it has ended. If ctx ends first, it kills the
// process and the error says so. The process's own exit code is in Err.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop %s: %w", p.name, ctx.Err()), p.Kill())
	}
}

// Kill ends the process and its own children with SIGKILL, as a crash does, and waits until it is
// gone. It is not an error if the process has already ended.
func (p *Process) Kill() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// exited returns an error about an unexpected end, with the last lines of the log.
func (p *Process) exited() error {
	return fmt.Errorf("%s ended (%s); the end of its log:\n%s", p.name, p.cmd.ProcessState, p.logTail())
}

func (p *Process) logTail() []byte {
	const lines = 60
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	b = bytes.TrimSpace(b)
	for i, n := len(b)-1, 0; i >= 0; i-- {
		if b[i] != '\n' {
			continue
		}
		if n++; n == lines {
			return b[i+1:]
		}
	}
	return b
}

// until polls ready until it returns nil. It gives up when the process or ctx ends, and returns the
// last reason for not being ready.
func (p *Process) until(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exited()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %w); the end of %s's log:\n%s", what, ctx.Err(), err, p.name, p.logTail())
		case <-tick.C:
		}
	}
}

// spawner returns the queue of a goroutine that is bound to one thread for good. The kernel sends
// the parent-death signal when the thread that created a child ends, not the process, so children
// must be started by a thread that lives as long as the process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartChild starts cmd in a process group of its own. It dies with this process, but is not stopped by
// StopAll; the caller must wait for it.
func StartChild(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	return spawn(cmd)
}

func spawn(cmd *exec.Cmd) error {
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
