// Package architecture keeps the import rules of the project true: what a package may use is
// said once, here, and checked against what the compiler sees.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "waybill.dev/waybill/"

// rule says what packages below a folder must not import, directly or through others.
type rule struct {
	folder string
	never  []string
	except []string
	reason string
}

var rules = []rule{
	{"api/v1alpha1", []string{module + "sync/", module + "webhooks", "sigs.k8s.io/controller-runtime", "helm.sh/"}, nil,
		"any Go program may import the kinds without a controller runtime"},
	{"api/validation", []string{module + "sync/", module + "webhooks", "helm.sh/"}, nil, "validation is pure"},
	{"webhooks", []string{module + "sync/"}, []string{module + "sync/health", module + "sync/membership", module + "sync/manifest", module + "sync/excerpt", module + "sync/keyed", module + "sync/cluster/rewind", module + "sync/render/values/schema"},
		"admission needs no engine"},
	{"sync/controllers/application", []string{module + "sync/source", module + "sync/render", module + "sync/deliver/release", "helm.sh/"}, nil,
		"what runs in a user cluster contacts no source (K43, K45)"},
	{"sync/membership", []string{module + "sync/", module + "webhooks", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, []string{module + "sync/membership"},
		"admission and controllers ask the same pure functions"},
	{"sync/manifest", []string{module + "sync/", module + "webhooks"}, nil, "who reads, renders, delivers and judges objects has them named in one way"},
	{"sync/source", []string{module + "sync/render", module + "sync/deliver", module + "sync/controllers"}, nil, "sources, renderers and delivery meet in a controller"},
	{"sync/render", []string{module + "sync/source", module + "sync/deliver", module + "sync/controllers"}, nil, "sources, renderers and delivery meet in a controller"},
	{"sync/deliver/apply", []string{module + "sync/source", module + "sync/render", module + "sync/controllers", "helm.sh/"}, nil, "sources, renderers and delivery meet in a controller"},
	{"sync/deliver", []string{module + "sync/source", module + "sync/controllers"}, nil, "sources, renderers and delivery meet in a controller"},
	{"sync/cluster/watch", []string{module + "sync/", module + "api/"}, nil, "a watch knows nothing of what is seen"},
	{"sync/cluster/rewind", []string{module}, []string{module + "sync/cluster/rewind"}, "admission and controllers notice alike that an API server was restored"},
	{"sync/cluster", []string{module + "sync/source", module + "sync/render", module + "sync/controllers", "helm.sh/"}, nil, "a cluster knows nothing of what is delivered to it"},
	{application + "tracker", []string{module + "sync/", module + "api/"}, []string{module + "sync/cluster/watch"}, "a tracker follows objects of any kind, whoever asks"},
	{application + "healthcache", []string{module + "sync/controllers", module + "sync/cluster"}, []string{module + application + "tracker", module + "sync/cluster/watch"},
		"how an object is does not depend on whose it is"},
	{application + "ownership", []string{module + "sync/controllers", module + "sync/cluster", "helm.sh/"}, []string{module + application + "tracker", module + "sync/cluster/watch"},
		"whose an object is does not depend on how it is"},
}

// application is the folder of the controller of Applications.
const application = "sync/controllers/application/"

// helmIn is where the helm SDK may be imported, so that a move to v4 stays there.
var helmIn = []string{"sync/deliver/release", "sync/render/helm", "sync/render/isolated", "sync/source/chart", "test/"}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []goPackage {
	t.Helper()
	packages, err := listed()
	require.NoError(t, err)
	return packages
}

// listed asks once for all tests.
var listed = sync.OnceValues(func() ([]goPackage, error) {
	var stdout, stderr bytes.Buffer
	command := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", module+"...")
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("list packages: %w: %s", err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(&stdout); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode packages: %w", err)
		}
		packages = append(packages, p)
	}
})

// K43, K45: only the hub's side has the code to contact a source; admission and the agent, which
// run in user clusters, have none of it.
func TestImports_followTheRules(t *testing.T) {
	packages := list(t)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, module)
		for _, r := range rules {
			if !within(folder, r.folder) {
				continue
			}
			for _, dependency := range p.Deps {
				assert.False(t, hasPrefix(dependency, r.never) && !hasPrefix(dependency, r.except), "%s imports %s: %s", folder, dependency, r.reason)
			}
		}
	}
}

func TestImports_controllersDoNotKnowEachOther(t *testing.T) {
	const controllers = "sync/controllers/"
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		if !strings.HasPrefix(folder, controllers) {
			continue
		}
		for _, dependency := range p.Deps {
			name, _, _ := strings.Cut(strings.TrimPrefix(folder, controllers), "/")
			own := within(strings.TrimPrefix(dependency, module), controllers+name)
			assert.False(t, strings.HasPrefix(dependency, module+controllers) && !own, "%s imports %s", folder, dependency)
		}
	}
}

func TestImports_helmStaysWhereItIs(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		for _, dependency := range p.Imports {
			if strings.HasPrefix(dependency, "helm.sh/") {
				assert.True(t, hasPrefix(folder, helmIn), "%s imports %s", folder, dependency)
			}
		}
	}
}

func TestSync_hasNoGoFilesOfItsOwn(t *testing.T) {
	for _, p := range list(t) {
		assert.NotEqual(t, module+"sync", p.ImportPath, "the name would shadow the standard library's")
	}
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

func hasPrefix(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
