package adopt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/output"
)

// print prints what is to be done.
func (p *plan) print(w io.Writer) error {
	spec := p.wanted.Spec
	verb := "is as it should be"
	switch {
	case p.existing == nil:
		verb = "is to be created"
	case p.writes():
		verb = "is to be changed"
	}
	fmt.Fprintf(w, "%s %s: type %s, ownership %s, selector %s, %s\n",
		nameOf(p.wanted), verb, spec.Type, spec.Ownership, metav1.FormatLabelSelector(spec.Selector), output.Count(len(spec.Components), "component"))
	table := output.NewTable("Kind", "Name", "Annotation")
	for _, v := range p.decisions {
		switch v.action {
		case annotate:
			output.AddRow(table, v.Resource.String(), v.object.Name, strings.TrimSpace("to be added "+v.reason))
		case belongs:
			output.AddRow(table, v.Resource.String(), v.object.Name, "there")
		}
	}
	if err := output.PrintTable(w, table, output.TableOptions{}); err != nil {
		return err
	}
	if spec.Ownership == v1alpha1.OwnershipOwn {
		fmt.Fprintln(w, "Ownership is Own: these objects are deleted when the Application is.")
	}
	return nil
}

// ask asks a yes-or-no question. Anything but yes counts as no; it is an error if there is no
// answer at all.
func ask(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s (y/N) ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	if err != nil && answer == "" {
		fmt.Fprintln(out)
		return false, errors.New("no answer: use --yes to go on without confirmation")
	}
	return answer == "y" || answer == "yes", nil
}
