package isolated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// The two processes take turns, in gob: the Builder sends a request, which the other answers with turns.
// To a question, the Builder sends a reply. Then come the parts of the result, one by one so that neither
// side has to hold them twice, and the end.

// request is what a process is to do: it renders the chart, or else builds the kustomization in a
// directory.
type request struct {
	Dir   string
	Chart *chartRequest
}

// turn is what a process that renders sends: one of the fields.
type turn struct {
	Question *question
	Lookup   *helm.Query

	Object   *object
	Problem  *manifest.Problem
	Text     *text
	Warnings []string
	CRD      *helm.CRD
	Recorded *recorded

	// Fault and End are the last turn.
	Fault *fault
	End   bool
}

// asks reports whether the process waits for a reply.
func (t turn) asks() bool { return t.Question != nil || t.Lookup != nil }

// question asks for something in the repository.
type question struct {
	What what
	Name string
}

// what is asked.
type what uint8

const (
	stat what = iota
	lstat
	readLink
	readDir
	readFile
)

// reply answers a question.
type reply struct {
	// Files is the file asked for, or those in the directory.
	Files   []fileInfo
	Target  string
	Content []byte
	// Pages are what a lookup found.
	Pages [][]byte
	Fault *fault
}

// fileInfo implements fs.FileInfo.
type fileInfo struct {
	Base  string
	Bytes int64
	Bits  fs.FileMode
}

func describe(info fs.FileInfo) fileInfo { return fileInfo{info.Name(), info.Size(), info.Mode()} }

func (f fileInfo) Name() string       { return f.Base }
func (f fileInfo) Size() int64        { return f.Bytes }
func (f fileInfo) Mode() fs.FileMode  { return f.Bits }
func (f fileInfo) ModTime() time.Time { return time.Time{} } // a build does not depend on it
func (f fileInfo) IsDir() bool        { return f.Bits.IsDir() }
func (f fileInfo) Sys() any           { return nil }

// object is a manifest.Object.
type object struct {
	JSON []byte
	File string
}

// encode returns an object as it is sent. Nothing in it is written longer than it must be.
func encode(o manifest.Object) (*object, error) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o.Object); err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.ID(), err)
	}
	return &object{JSON: content.Bytes(), File: o.File}, nil
}

func decode(o *object) (manifest.Object, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(o.JSON, &content); err != nil {
		return manifest.Object{}, fmt.Errorf("decode an object of %s: %w", o.File, err)
	}
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: content}, File: o.File}, nil
}

// fault is an error on its way to the other process. It preserves what the error is, as far as
// callers ask for that.
type fault struct {
	Text string
	Is   int
}

// kinds of errors, by what a fault is. The first is that of all others.
var kinds = []error{nil, fs.ErrNotExist, fs.ErrInvalid, fs.ErrPermission, helm.ErrRender, helm.ErrInvalidValues}

// faultBytes bounds the text of a fault, which may quote anything that a chart wants it to.
const faultBytes = 16 << 10

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	found := &fault{Text: excerpt.Of(err.Error(), faultBytes)}
	for i, kind := range kinds[1:] {
		if errors.Is(err, kind) {
			found.Is = i + 1
		}
	}
	return found
}

// Error returns the text of the error.
func (f *fault) Error() string { return f.Text }

// Unwrap returns what the error was, or nil.
func (f *fault) Unwrap() error { return kinds[f.Is] }

// err returns the fault as an error, or nil.
func (f *fault) err() error {
	if f == nil {
		return nil
	}
	return f
}
