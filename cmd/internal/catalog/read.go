package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/source/chart"
)

// readFolder reads a chart from a folder. Links do not lead out of its working copy.
func readFolder(ctx context.Context, charts *chart.Cache, folder string) (*chart.Chart, error) {
	dir, within, err := manifests.WorkingCopy(folder)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", folder, err)
	}
	open := func(context.Context) (fs.FS, func(), error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("open %s: %w", folder, err)
		}
		return root.FS(), func() { _ = root.Close() }, nil // nothing was written
	}
	loaded, err := charts.FromFS(ctx, chart.Tree{Open: open, Path: within}, chart.Credentials{})
	if err != nil {
		return nil, fmt.Errorf("read chart %s: %w", folder, err)
	}
	return loaded, nil
}

// explainExists says what to do about a definition that is there already.
func explainExists(err error, name string) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is one already: waybill catalog bump %s adds versions to it", name)
	}
	return err
}
