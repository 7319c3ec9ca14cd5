package isolated

import (
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"helm.sh/helm/v3/pkg/chart"

	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/render/helm"
)

// server is a process that renders, as it sees itself.
type server struct {
	from *gob.Decoder
	to   *gob.Encoder
	// chart is the one of the request before, if that said to keep it.
	chart *chart.Chart
}

// serve does what it is asked to.
func serve(in io.Reader, out io.Writer) {
	s := &server{from: gob.NewDecoder(untilEnd(in)), to: gob.NewEncoder(out)}
	for {
		var r request
		must(s.from.Decode(&r))
		s.perform(r)
		release()
	}
}

// must ends a process that has lost the other end of its pipes.
func must(err error) {
	if err != nil {
		os.Exit(1)
	}
}

func (s *server) tell(t turn) { must(s.to.Encode(t)) }

// ask returns the reply to a question.
func (s *server) ask(t turn) (r reply) {
	s.tell(t)
	must(s.from.Decode(&r))
	return r
}

func (s *server) perform(r request) {
	defer limitMemory()()
	if r.Chart == nil {
		s.chart = nil
		build(files{func(q question) reply { return s.ask(turn{Question: &q}) }, make(map[question]reply)}, r.Dir, s.tell)
		return
	}
	if err := s.render(r.Chart); err != nil {
		s.tell(turn{Fault: faultOf(err)})
		return
	}
	s.tell(turn{End: true})
}

// render renders a chart, or checks its values, and sends the result.
func (s *server) render(r *chartRequest) (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("%w: helm failed unexpectedly: %v", helm.ErrRender, crash)
		}
	}()
	c, err := s.chartOf(r)
	if err != nil {
		return err
	}
	if r.Validate {
		return s.validate(c, r.Values.unpackMap())
	}
	var lookup helm.Lookup
	if r.Lookup {
		lookup = s.lookup
	}
	rendered, err := helm.Templates(c, r.options(), lookup)
	if err != nil {
		return err
	}
	s.warn(rendered.Warnings)
	for _, name := range slices.Sorted(maps.Keys(rendered.Files)) {
		s.tell(turn{Text: &text{name, rendered.Files[name]}})
	}
	if !helm.HasDependencies(c) {
		return nil
	}
	changed := &recorded{}
	if changed.Metadata, err = json.Marshal(rendered.Chart.Metadata); err != nil {
		return fmt.Errorf("%w: encode metadata: %w", helm.ErrRender, err)
	}
	if changed.Values, err = packMap(rendered.Chart.Values); err != nil {
		return err
	}
	s.tell(turn{Recorded: changed})
	return nil
}

// validate checks values, and sends the CRDs.
func (s *server) validate(c *chart.Chart, values map[string]any) error {
	checked, err := helm.Validate(c, values)
	s.warn(checked.Warnings)
	if err != nil {
		return err
	}
	for i := range checked.CRDs {
		s.tell(turn{CRD: &checked.CRDs[i]})
	}
	return nil
}

// chartOf returns the chart of a request.
func (s *server) chartOf(r *chartRequest) (*chart.Chart, error) {
	if r.Chart == nil {
		return s.chart, nil
	}
	s.chart = nil
	c, err := r.Chart.unpack()
	if r.Keep {
		s.chart = c
	}
	return c, err
}

// lookup asks for what a template looks up.
func (s *server) lookup(q helm.Query) ([][]byte, error) {
	r := s.ask(turn{Lookup: &q})
	return r.Pages, r.Fault.err()
}

// warnings of a chart name the schemas that were not fetched.
const (
	maxWarnings = 20
	// warningBytes bounds the text of one.
	warningBytes = 1 << 10
)

func (s *server) warn(warnings []string) {
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		s.tell(turn{Warnings: []string{excerpt.Of(w, warningBytes)}})
	}
}
