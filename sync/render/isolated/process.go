package isolated

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/kustomize"
)

// errEnded is the error of a process that ended during a build.
var errEnded = errors.New("the process ended")

// process is one that builds, as its Builder sees it.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	to     *gob.Encoder
	from   *gob.Decoder
	stderr *verdict
	// retire ends the process after it was idle for long; nil if it never was.
	retire *time.Timer
	// spoke says that the process has said anything in this build.
	spoke bool
	// failure is the first error in this build that reading the repository met and that is not about its
	// content.
	failure error
}

// start starts a process. It gets nothing of the environment, where credentials may be.
func start(memory int64) (*process, error) {
	program, err := itself()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, command), stderr: &verdict{}} //nolint:gosec,noctx // it is this program; builds end it
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
	p.in, p.to, p.from = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return p, p.cmd.Start()
}

// itself returns the path of this program: of what runs, even if another version has taken its place.
func itself() (string, error) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == command:
		return "", errors.New("the program was started to build, and did not call isolated.Main")
	case runtime.GOOS == "linux":
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// kill ends the process.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // it has ended, else

// wait waits for its end.
func (p *process) wait() { _ = p.cmd.Wait() } // how it ended is in ProcessState

// build makes the process build a kustomization, and reads files for it. The error is errEnded, or one
// of the two sides' misunderstanding each other; what kustomize.Render returned is the fault.
func (p *process) build(root fs.FS, dir string) (objects []manifest.Object, problems []manifest.Problem, failed *fault, err error) {
	p.failure, p.spoke = nil, false
	if err := p.to.Encode(dir); err != nil {
		return nil, nil, nil, errEnded
	}
	for {
		var t turn
		switch err := p.from.Decode(&t); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, fs.ErrClosed):
			return nil, nil, nil, errEnded
		case err != nil:
			return nil, nil, nil, fmt.Errorf("read what the process for kustomize says: %w", err)
		}
		p.spoke = true
		switch {
		case t.Question != nil:
			if err := p.to.Encode(p.answer(root, *t.Question)); err != nil {
				return nil, nil, nil, errEnded
			}
		case t.Problem != nil:
			problems = append(problems, *t.Problem)
		case t.Object != nil:
			object, err := decode(t.Object)
			if err != nil {
				return nil, nil, nil, err
			}
			objects = append(objects, object)
		default:
			return objects, problems, t.Fault, nil
		}
	}
}

// answer answers a question.
func (p *process) answer(root fs.FS, q question) reply {
	r, err := read(root, q)
	r.Fault = faultOf(err)
	if err != nil && r.Fault.Unwrap() == nil && p.failure == nil {
		p.failure = err
	}
	return r
}

// read reads what a question is about. A file that is larger than any may be is cut off after that.
func read(root fs.FS, q question) (r reply, err error) {
	var info fs.FileInfo
	switch q.What {
	case stat:
		info, err = fs.Stat(root, q.Name)
	case lstat:
		info, err = fs.Lstat(root, q.Name)
	case readLink:
		r.Target, err = fs.ReadLink(root, q.Name)
		return r, err
	case readDir:
		return list(root, q.Name)
	case readFile:
		return content(root, q.Name)
	default:
		err = fmt.Errorf("unknown question %d: %w", q.What, errors.ErrUnsupported)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{Files: []fileInfo{describe(info)}}, nil
}

func list(root fs.FS, dir string) (r reply, err error) {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return reply{}, err
	}
	for _, e := range entries {
		r.Files = append(r.Files, fileInfo{Base: e.Name(), Bits: e.Type()})
	}
	return r, nil
}

func content(root fs.FS, name string) (r reply, err error) {
	f, err := root.Open(name)
	if err != nil {
		return reply{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return reply{}, err
	}
	r.Files = []fileInfo{describe(info)}
	if info.IsDir() {
		return r, nil
	}
	r.Content, err = io.ReadAll(io.LimitReader(f, kustomize.DefaultLimits().FileBytes+1))
	return r, err
}

// ended says why the process, which was waited for, ended during a build. The error is for what the build is not to blame for:
// the next one may succeed.
func (p *process) ended(root fs.FS, dir string, memory int64) ([]manifest.Problem, error) {
	problem := manifest.Problem{File: cmp.Or(kustomize.File(root, path.Clean(dir)), dir)}
	switch fatal := p.stderr.fatal; {
	case p.cmd.ProcessState.ExitCode() == exitMemory, strings.Contains(fatal, "memory"):
		problem.Reason = manifest.ReasonLimitExceeded
		problem.Message = fmt.Sprintf("the build takes more memory than it may (%s); split it, or look for patches, replacements and labels "+
			"that write much to many objects, or write again and again", resource.NewQuantity(memory, resource.BinarySI))
	case strings.Contains(fatal, "stack"):
		problem.Reason = manifest.ReasonBuildFailed
		problem.Message = "kustomize called itself until its stack was full; look for definitions in crds that refer to each other, and for " +
			"values that are nested too deep"
	default:
		return nil, fmt.Errorf("kustomize's process ended: %s", cmp.Or(fatal, p.cmd.ProcessState.String()))
	}
	return []manifest.Problem{problem}, nil
}

// verdict reads what Go writes when an error ends a process, and keeps what the error was. That holds no
// content of files.
type verdict struct {
	fatal string
	// line is the beginning of the line that is written.
	line []byte
}

// lineBytes is how much of a line a verdict looks at.
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
