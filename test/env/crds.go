package env

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// crdOptions returns the options for installing CRDs; they bound how long a CRD may take to be
// served.
func crdOptions() envtest.CRDInstallOptions {
	return envtest.CRDInstallOptions{ErrorIfPathMissing: true, MaxTime: Limit, PollInterval: 20 * time.Millisecond}
}

// InstallCRDs creates or updates the CustomResourceDefinitions in the given files
// and directories, and returns when they are served.
func (c *Cluster) InstallCRDs(_ context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	options := crdOptions()
	options.Paths = paths
	if _, err := envtest.InstallCRDs(c.RESTConfig(), options); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

// InstallCRDsFS is InstallCRDs for the YAML files at any depth of fsys.
func (c *Cluster) InstallCRDsFS(_ context.Context, fsys fs.FS) error {
	options := crdOptions()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		crds, err := decodeCRDs(content)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		options.CRDs = append(options.CRDs, crds...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read CRDs: %w", err)
	}
	if _, err := envtest.InstallCRDs(c.RESTConfig(), options); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

func decodeCRDs(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return nil, err
		}
		if crd.Kind == "CustomResourceDefinition" {
			crds = append(crds, crd)
		}
	}
}
