package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/keyed"
)

const (
	// memoBytes bounds the texts that a memo keeps, and memoText one of them.
	memoBytes, memoText = 4 << 20, 512 << 10
	// memoTime is how long a memo that nothing is added to is kept.
	memoTime = 5 * time.Minute
)

// Memo remembers what was made of texts. An application that many clusters have renders to the same text in
// each of them, if its namespace and name are the same: that is sorted, marked and parsed once. It keeps
// the texts that were used last, and all of them only while releases are being made: manifests contain Secrets.
type Memo struct {
	making singleflight.Group
	texts  *keyed.Recent[memoKey, string]
	// forget ends what is kept when nothing was added for memoTime.
	forget *time.Timer
}

// NewMemo returns a Memo that remembers nothing yet. It is safe for concurrent use.
func NewMemo() *Memo {
	texts := keyed.NewRecent[memoKey, string](memoBytes)
	return &Memo{texts: texts, forget: time.AfterFunc(memoTime, texts.Clear)}
}

// memoKey identifies what a text was made of.
type memoKey [sha256.Size]byte

func memoKeyOf(parts ...string) memoKey {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash accepts everything
	}
	return memoKey(sum.Sum(nil))
}

// put remembers what was made of something, unless that is large.
func (m *Memo) put(key memoKey, text string) {
	if len(text) > memoText {
		return
	}
	m.texts.Put(key, text, int64(len(text)))
	m.forget.Reset(memoTime)
}

// of returns what do makes of something, or has made of it before. Who asks for the same at the same time
// waits for the first. An error is not remembered.
func (m *Memo) of(key memoKey, do func() (string, error)) (string, error) {
	if known, ok := m.texts.Lookup(key); ok {
		return known, nil
	}
	made, err, _ := m.making.Do(string(key[:]), func() (any, error) {
		text, err := do()
		if err == nil {
			m.put(key, text)
		}
		return text, err
	})
	if err != nil {
		return "", err
	}
	return made.(string), nil
}

// json returns manifests as JSON, which is parsed in a fraction of the time, or else as they are: what is
// wrong with them is for their parser to say.
func (m *Memo) json(text string) string {
	converted, err := m.of(memoKeyOf("json", text), func() (string, error) { return inJSON(text) })
	if err != nil {
		return text
	}
	return converted
}

// errOther is the error for what is not an object in YAML.
var errOther = errors.New("neither null nor an object in YAML")

// inJSON returns the objects of manifests in JSON, one after the other.
func inJSON(text string) (string, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "", errOther // its parser takes that for JSON
	}
	var out bytes.Buffer
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out.String(), nil
		}
		if err != nil {
			return "", err
		}
		object, err := yaml.YAMLToJSON(document)
		switch {
		case err != nil:
			return "", err
		case string(object) == "null":
			continue
		case !bytes.HasPrefix(object, []byte("{")):
			return "", errOther
		}
		out.Write(append(object, '\n'))
	}
}
