package kustomize

import (
	"fmt"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// maxCopyBytes bounds what the copy operations of one JSON patch may add to one object. Without it,
// each may double the object.
const maxCopyBytes = 64 << 10

// prepare sets up what all builds share, once per process: it bounds the library that applies JSON
// patches, and makes kyaml parse the schema of the built-in kinds. Otherwise kustomize parses it when
// a build first needs it, in a way that is not safe while other builds read it.
var prepare = sync.OnceValue(func() (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("parse the built-in schema: %v", crash)
		}
	}()
	jsonpatch.AccumulatedCopySizeLimit = maxCopyBytes
	openapi.Schema()
	return nil
})
