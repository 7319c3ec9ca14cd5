package isolated

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
)

// errEnded is the error of a process that ended during a task.
var errEnded = errors.New("the process ended")

// process is one that renders, as its Builder sees it.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	to   *gob.Encoder
	from *gob.Decoder
	// said is what from reads, as far as it may.
	said   *allowance
	stderr *verdict
	// retire ends the process after it was idle for long; nil if it never was.
	retire *time.Timer
	// spoke says that the process has said anything about this task.
	spoke bool
	// chart is the one that the process has, from the task before; nil if there is none.
	chart *chart.Chart
}

// start starts a process. It gets nothing of the environment, where credentials may be.
func start(memory int64) (*process, error) {
	program, err := itself()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, command), stderr: &verdict{}} //nolint:gosec,noctx // it is this program; tasks end it
	p.cmd.Args[0] = os.Args[0]
	p.cmd.Env = []string{fmt.Sprint("GOMEMLIMIT=", memory)}
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.said = &allowance{from: out}
	p.in, p.to, p.from = in, gob.NewEncoder(in), gob.NewDecoder(p.said)
	return p, p.cmd.Start()
}

// itself returns the path of this program: of what runs, even if another version has taken its place.
func itself() (string, error) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == command:
		return "", errors.New("the program was started to render, and did not call isolated.Main")
	case runtime.GOOS == "linux":
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// kill ends the process.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // it has ended, else

// wait waits for its end.
func (p *process) wait() { _ = p.cmd.Wait() } // how it ended is in ProcessState

// perform has the process render a task, and answers its questions. The error is errEnded, or one of the
// two sides' misunderstanding each other; what the renderer returned is the fault.
func (p *process) perform(ctx context.Context, t task) (*fault, error) {
	p.spoke, p.said.left = false, t.most()
	r, err := t.request(p)
	if err != nil {
		return nil, err
	}
	if err := p.to.Encode(r); err != nil {
		return nil, errEnded
	}
	for {
		var said turn
		switch err := p.from.Decode(&said); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, fs.ErrClosed):
			return nil, errEnded
		case err != nil:
			return nil, fmt.Errorf("read what the process that renders says: %w", err)
		}
		p.spoke = true
		switch {
		case said.asks():
			answer, err := t.answer(ctx, said)
			if err != nil {
				return nil, err
			}
			if err := p.to.Encode(answer); err != nil {
				return nil, errEnded
			}
		case said.Fault != nil, said.End:
			return said.Fault, nil
		default:
			if err := t.take(said); err != nil {
				return nil, err
			}
		}
	}
}

// ended says why the process, which was waited for, ended during a task: errMemory, errStack, or an error
// that the task is not to blame for, so that the next try may succeed.
func (p *process) ended() error {
	switch fatal := p.stderr.fatal; {
	case p.cmd.ProcessState.ExitCode() == exitMemory, strings.Contains(fatal, "memory"):
		return errMemory
	case strings.Contains(fatal, "stack"):
		return errStack
	default:
		return fmt.Errorf("the process that renders ended: %s", cmp.Or(fatal, p.cmd.ProcessState.String()))
	}
}

// errTooMuch is the error of a process that says more than it may.
var errTooMuch = errors.New("it says more than it may")

// allowance reads no more than it may.
type allowance struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errTooMuch
	}
	n, err := a.from.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, err
}

// verdict reads what Go writes when an error ends a process, and keeps what the error was. That holds no
// content of files.
type verdict struct {
	fatal string
	// line is the beginning of the line that is written.
	line []byte
}

// lineBytes is how much of a line a verdict reads.
const lineBytes = 1 << 10

// Write implements io.Writer.
func (v *verdict) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(v.line) < lineBytes {
				v.line = append(v.line, c)
			}
			continue
		}
		if said, ok := bytes.CutPrefix(v.line, []byte("fatal error: ")); ok && v.fatal == "" {
			v.fatal = string(said)
		}
		v.line = v.line[:0]
	}
	return len(p), nil
}
