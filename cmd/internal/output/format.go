package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Format is the flag -o of a command that has a form for people and forms for programs.
type Format struct {
	value   string
	allowed []string
}

// NewFormat returns a flag that allows these formats besides json and yaml.
func NewFormat(others ...string) *Format {
	return &Format{allowed: append([]string{"json", "yaml"}, others...)}
}

// AddFlag adds the flag to a command.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "Format of the output: "+strings.Join(f.allowed, ", "))
	// This fails only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format; empty if none was chosen.
func (f *Format) String() string { return f.value }

// Type returns the flag's value as shown in the help.
func (f *Format) Type() string { return "FORMAT" }

// Set sets the format, if it is allowed.
func (f *Format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be one of %s", strings.Join(f.allowed, ", "))
	}
	f.value = value
	return nil
}

// Structured reports whether the output is for programs.
func (f *Format) Structured() bool { return f.value == "json" || f.value == "yaml" }

// Print writes value as JSON or YAML; its JSON tags name the fields.
func (f *Format) Print(w io.Writer, value any) error {
	if f.value == "yaml" {
		out, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("print yaml: %w", err)
		}
		_, err = w.Write(out)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
