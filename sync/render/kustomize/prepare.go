package kustomize

import (
	"fmt"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// prepare makes kyaml parse the schema of the built-in kinds, once per process. Otherwise kustomize
// parses it when a build first needs it, in a way that is not safe while other builds read it.
var prepare = sync.OnceValue(func() (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("parse the built-in schema: %v", crash)
		}
	}()
	openapi.Schema()
	return nil
})
