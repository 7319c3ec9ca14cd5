package isolated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/render/kustomize"
)

// mostKustomization bounds what a process may say about a kustomization. Objects are bounded by
// kustomize.Limits, which counts neither punctuation nor questions.
const mostKustomization = 256 << 20

// Build builds the kustomization in a directory of the repository whose root is given, as
// kustomize.Render does. In addition, a build that takes more memory than it may, or fills its stack,
// is a Problem, and one that takes more time an error. If ctx ends first, so does the build, and the error
// says so.
func (b *Builder) Build(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
	k := &kustomization{root: root, dir: dir, limit: b.limit(render.TermsOf(ctx).Time)}
	err := b.do(ctx, k)
	var failed *fault
	problem := manifest.Problem{File: cmp.Or(kustomize.File(root, path.Clean(dir)), dir)}
	switch {
	case err == nil:
		return k.objects, k.problems, nil
	case errors.Is(err, errMemory):
		problem.Reason = manifest.ReasonLimitExceeded
		problem.Message = fmt.Sprintf("the build takes more memory than it may (%s); split it, or look for patches, replacements and labels "+
			"that write much to many objects, or write again and again", resource.NewQuantity(b.memory, resource.BinarySI))
	case errors.Is(err, errStack):
		problem.Reason = manifest.ReasonBuildFailed
		problem.Message = "kustomize called itself until its stack was full; look for definitions in crds that refer to each other, and for " +
			"values that are nested too deep"
	case errors.Is(err, errTime):
		return nil, nil, fmt.Errorf("the build takes longer than it may (%s); split it, or look for patches and replacements that write again and again", k.limit)
	case errors.As(err, &failed) && k.failure != nil:
		return nil, nil, k.failure
	default:
		return nil, nil, err
	}
	return nil, []manifest.Problem{problem}, nil
}

// kustomization is a kustomization to build.
type kustomization struct {
	root  fs.FS
	dir   string
	limit time.Duration

	objects  []manifest.Object
	problems []manifest.Problem
	// failure is the first error that reading the repository met and that is not about its content.
	failure error
}

func (k *kustomization) request(p *process) (request, error) {
	k.objects, k.problems, k.failure = nil, nil, nil
	p.chart = nil
	return request{Dir: k.dir}, nil
}

func (k *kustomization) take(t turn) error {
	if t.Problem != nil {
		k.problems = append(k.problems, *t.Problem)
	}
	if t.Object == nil {
		return nil
	}
	object, err := decode(t.Object)
	k.objects = append(k.objects, object)
	return err
}

func (k *kustomization) most() int64         { return mostKustomization }
func (k *kustomization) time() time.Duration { return k.limit }

// answer answers a question about a file.
func (k *kustomization) answer(_ context.Context, t turn) (reply, error) {
	if t.Question == nil {
		return reply{}, errors.ErrUnsupported
	}
	r, err := read(k.root, *t.Question)
	r.Fault = faultOf(err)
	if err != nil && r.Fault.Unwrap() == nil && k.failure == nil {
		k.failure = err
	}
	return r, nil
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

// build builds a kustomization in the process that is there for it, and sends the result.
func build(root files, dir string, tell func(turn)) {
	objects, problems, err := kustomize.Render(context.Background(), root, dir, kustomize.Options{})
	if err != nil {
		tell(turn{Fault: faultOf(err)})
		return
	}
	for _, p := range problems {
		tell(turn{Problem: &p})
	}
	for _, o := range objects {
		encoded, err := encode(o)
		if err != nil {
			tell(turn{Fault: faultOf(err)})
			return
		}
		tell(turn{Object: encoded})
	}
	tell(turn{End: true})
}
