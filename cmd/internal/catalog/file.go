package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

// ofFile adds versions to the definitions of a YAML file: as lines before those that are there, so that
// nothing else of the file changes.
func (f *finder) ofFile(ctx context.Context, name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := expansion.Text(content, expansion.Limits{}); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	found, err := definitionsIn(content)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("has no ApplicationDefinition")
	}
	lines, changed := strings.SplitAfter(string(content), "\n"), false
	for _, d := range slices.Backward(found) { // so that the lines of those before stay where they are
		what := name + ": ApplicationDefinition " + d.Name
		versions, from, err := f.found(ctx, &d.ApplicationDefinition)
		if err != nil {
			return fmt.Errorf("ApplicationDefinition %s: %w", d.Name, err)
		}
		if len(versions) > 0 && !f.dryRun {
			if lines, err = d.insert(lines, versions, from); err != nil {
				return fmt.Errorf("ApplicationDefinition %s: %w", d.Name, err)
			}
			changed = true
		}
		f.tell(what, versions)
	}
	if !changed {
		return nil
	}
	return replace(name, strings.Join(lines, ""))
}

// written is a definition in a file.
type written struct {
	v1alpha1.ApplicationDefinition

	// versions are the nodes of spec.versions.
	versions *yaml.Node
}

// definitionsIn returns the definitions of a YAML file, in its order.
func definitionsIn(content []byte) ([]*written, error) {
	var found []*written
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("is not valid YAML: %w", err)
		}
		node := yaml.NewRNode(document)
		meta, err := node.GetMeta()
		if err != nil || meta.Kind != v1alpha1.ApplicationDefinitionKind || !strings.HasPrefix(meta.APIVersion, v1alpha1.Group+"/") {
			continue
		}
		text, err := node.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("ApplicationDefinition %s cannot be read: %w", meta.Name, err)
		}
		d := &written{}
		if err := json.Unmarshal(text, &d.ApplicationDefinition); err != nil {
			return nil, fmt.Errorf("ApplicationDefinition %s cannot be read: %w", meta.Name, err)
		}
		versions, err := node.Pipe(yaml.Lookup("spec", "versions"))
		if err != nil || versions == nil {
			return nil, fmt.Errorf("ApplicationDefinition %s has no spec.versions", meta.Name)
		}
		d.versions = versions.YNode()
		found = append(found, d)
	}
}

// insert inserts versions, which are made like the one at from, before those that there are.
func (d *written) insert(lines []string, versions []string, from int) ([]string, error) {
	errFlow := errors.New("spec.versions is not a list of lines that begin with a dash: write it so, or add the versions by hand")
	if d.versions.Style&yaml.FlowStyle != 0 || len(d.versions.Content) == 0 {
		return nil, errFlow
	}
	first := d.versions.Content[0]
	dash := strings.Index(lines[first.Line-1], "-")
	if first.Column < 3 || dash < 0 || dash >= first.Column-1 || strings.TrimSpace(lines[first.Line-1][:dash]) != "" {
		return nil, errFlow
	}
	at := first.Line - 1
	for comments := strings.Count(first.HeadComment, "\n"); first.HeadComment != "" && comments >= 0 && at > 0; comments-- {
		if !strings.HasPrefix(strings.TrimSpace(lines[at-1]), "#") {
			break
		}
		at--
	}
	margin := strings.Repeat(" ", dash)
	var added []string
	for _, version := range versions {
		entry, err := like(d.versions.Content[from], version)
		if err != nil {
			return nil, err
		}
		mark := "- "
		for line := range strings.Lines(entry) {
			if strings.TrimSpace(line) != "" {
				line = margin + mark + line
			}
			added, mark = append(added, line), "  "
		}
	}
	return slices.Insert(lines, at, added...), nil
}

// like returns the text of a version that is made as another one, without its comments.
func like(node *yaml.Node, version string) (string, error) {
	entry := yaml.NewRNode(yaml.CopyYNode(node))
	strip(entry.YNode())
	err := errors.Join(
		entry.PipeE(yaml.Clear("deprecated")),
		entry.PipeE(yaml.Lookup("version"), yaml.FilterFunc(renamed(version))),
		entry.PipeE(yaml.Lookup("template", "source", "helm", "chartVersion"), yaml.FilterFunc(renamed(version))),
	)
	if err != nil {
		return "", fmt.Errorf("write version %s: %w", version, err)
	}
	return entry.String()
}

// renamed returns a filter that replaces a text, which stays quoted if it is.
func renamed(to string) func(*yaml.RNode) (*yaml.RNode, error) {
	return func(node *yaml.RNode) (*yaml.RNode, error) {
		if node != nil {
			node.YNode().Value, node.YNode().Tag = to, yaml.NodeTagString
		}
		return node, nil
	}
}

// strip removes the comments of a node, and of those in it: they say something of another version.
func strip(node *yaml.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	for _, inner := range node.Content {
		strip(inner)
	}
}

// replace overwrites a file, and keeps its permissions.
func replace(name, content string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(content), info.Mode().Perm())
}
