package catalog

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/source/chart"
)

// logo fetches the icon of a chart, if it can be a logo.
func logo(ctx context.Context, charts *chart.Cache, icon, repository string) (*v1alpha1.Logo, error) {
	data, err := charts.Icon(ctx, icon, repository)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) {
		return &v1alpha1.Logo{Format: "png", Data: data}, nil
	}
	if err := safeSVG(data); err != nil {
		return nil, err
	}
	return &v1alpha1.Logo{Format: "svg+xml", Data: data}, nil
}

// drawing are the elements that a logo may have: what draws, and nothing that runs, embeds or links.
var drawing = strings.Fields("svg g defs symbol use path rect circle ellipse line polyline polygon text tspan title desc metadata " +
	"linearGradient radialGradient stop clipPath mask pattern filter style switch marker " +
	"feGaussianBlur feOffset feMerge feMergeNode feBlend feColorMatrix feComposite feFlood feDropShadow")

// safeSVG returns why a text is not an SVG image that is safe to show on a page: it may run nothing and
// load nothing.
func safeSVG(data []byte) error {
	if !bytes.Contains(data, []byte("<svg")) {
		return errors.New("it is neither PNG nor SVG")
	}
	decoder, depth := xml.NewDecoder(bytes.NewReader(data)), 0
	inMetadata := 0
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && depth == 0:
			return nil
		case err != nil:
			return fmt.Errorf("its SVG cannot be read: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			if bytes.Contains(t, []byte("ENTITY")) {
				return errors.New("its SVG declares entities")
			}
		case xml.ProcInst:
			if t.Target != "xml" {
				return fmt.Errorf("its SVG has an instruction %s", t.Target)
			}
		case xml.StartElement:
			depth++
			if t.Name.Local == "metadata" || inMetadata > 0 {
				inMetadata++
			}
			if err := safeElement(t, inMetadata > 0); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
			inMetadata = max(0, inMetadata-1)
		case xml.CharData:
			if loads(string(t)) {
				return errors.New("its SVG loads other files")
			}
		}
	}
}

// safeElement returns why an element may not be in a logo. Elements of editors' own are left out by
// browsers, below metadata all are.
func safeElement(t xml.StartElement, metadata bool) error {
	const svg = "http://www.w3.org/2000/svg"
	if own := t.Name.Space == "" || t.Name.Space == svg; own && !slices.Contains(drawing, t.Name.Local) || strings.HasSuffix(t.Name.Space, "xhtml") {
		return fmt.Errorf("its SVG has an element %s", t.Name.Local)
	}
	for _, a := range t.Attr {
		name := strings.ToLower(a.Name.Local)
		switch {
		case strings.HasPrefix(name, "on"):
			return fmt.Errorf("its SVG has an attribute %s, which runs a script", a.Name.Local)
		case (name == "href" || name == "src") && !strings.HasPrefix(a.Value, "#") && !metadata:
			return errors.New("its SVG links to other files")
		case a.Name.Space != "xmlns" && name != "xmlns" && !metadata && loads(a.Value):
			return errors.New("its SVG loads other files")
		}
	}
	return nil
}

// loads reports whether a style loads anything but a part of its own image.
func loads(style string) bool {
	lower := strings.ToLower(style)
	for rest := lower; ; {
		_, after, found := strings.Cut(rest, "url(")
		if !found {
			break
		}
		if target := strings.TrimLeft(after, " \t\r\n\"'"); !strings.HasPrefix(target, "#") {
			return true
		}
		rest = after
	}
	return strings.Contains(lower, "@import") || strings.Contains(lower, "javascript:") || strings.Contains(lower, `\`)
}
