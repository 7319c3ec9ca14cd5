package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/chart"
)

// Local maps the addresses of repositories to local folders that stand for them: clones of git
// repositories, and folders with the charts of Helm repositories and registries, a folder each.
type Local map[string]string

// ParseLocal reads arguments of the form URL=FOLDER.
func ParseLocal(args []string) (Local, error) {
	local := Local{}
	for _, arg := range args {
		i := strings.LastIndex(arg, "=")
		if i < 1 || i == len(arg)-1 {
			return nil, fmt.Errorf("--source %s: must be URL=FOLDER", arg)
		}
		local[addressed(arg[:i])] = arg[i+1:]
	}
	return local, nil
}

// stands reports whether a folder stands for an address.
func (l Local) stands(url string) bool { return l[addressed(url)] != "" }

// addressed returns an address as it is compared.
func addressed(url string) string { return strings.TrimRight(url, "/") }

// open opens the folder that stands for an address. Links do not lead out of it.
func (l Local) open(url string) (*os.Root, error) {
	folder := l[addressed(url)]
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("--source %s=%s: %w", url, folder, err)
	}
	return root, nil
}

// localChart loads a chart from the folder that stands for its repository. It must have the version that
// is wanted: a folder has one.
func (s *Sources) localChart(ctx context.Context, ref chart.Reference) (*chart.Chart, error) {
	root, err := s.local.open(ref.URL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	if _, err := fs.Stat(root.FS(), ref.Name+"/Chart.yaml"); err != nil {
		return nil, fmt.Errorf("no chart %s in %s, which stands for %s: %w", ref.Name, root.Name(), ref.URL, err)
	}
	loaded, err := s.chartIn(ctx, root.FS(), ref.Name)
	if err != nil {
		return nil, fmt.Errorf("load chart %s of %s: %w", ref.Name, root.Name(), err)
	}
	if has := loaded.Metadata.Version; strings.TrimPrefix(has, "v") != strings.TrimPrefix(ref.Version, "v") {
		return nil, fmt.Errorf("chart %s in %s has version %s, and %s is wanted: choose a version with --version", ref.Name, root.Name(), has, ref.Version)
	}
	return loaded, nil
}

// explainOffline says what to do about a source that could not be fetched because of --offline.
func explainOffline(url string, err error) error {
	if errors.As(err, new(*address.OfflineError)) {
		return needsSource(url)
	}
	return err
}

func needsSource(url string) error {
	return fmt.Errorf("%s is not fetched with --offline: name a local copy with --source %s=FOLDER", url, url)
}
