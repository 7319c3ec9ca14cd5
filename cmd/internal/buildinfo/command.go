// Package buildinfo implements the command `version`.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

// build says what the program was built from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	API      string `json:"api"`
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	format := output.NewFormat()
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what this program was built from",
		Example: `  # The version, for a report of a problem
  waybill version -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := read(env.Version)
			if format.Structured() {
				return format.Print(env.Out, b)
			}
			_, err := fmt.Fprint(env.Out, b)
			return err
		},
	}
	format.AddFlag(cmd)
	return cmd
}

// Text returns what the command prints.
func Text(env *cli.Env) string { return read(env.Version).String() }

// String returns what people see of a build.
func (b build) String() string {
	return fmt.Sprintf("waybill %s\napi %s, %s, %s\n", b.describe(), b.API, b.Go, b.Platform)
}

// describe returns which build this is, as far as it is known.
func (b build) describe() string {
	text := b.Version
	if b.Commit != "" {
		text += " of " + b.Commit
	}
	if b.Modified {
		text += " with changes"
	}
	return text
}

func read(version string) build {
	b := build{
		Version: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, API: v1alpha1.GroupVersion.String(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
