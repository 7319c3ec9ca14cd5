package hook

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"waybill.dev/waybill/api/expansion"
)

// Limits of the tags that one command may print.
const (
	maxTags     = 50
	maxTagValue = 1 << 10
)

// Tags returns the tags that a command printed: its output is then `{"tags": {"KEY": "VALUE"}}` and
// nothing else. It returns none if the output is anything but a JSON object with that field, which
// most commands' output is, and an error if it is one with wrong or with too many tags.
func Tags(r Result) (map[string]string, error) {
	output := bytes.TrimSpace(r.Output)
	if !bytes.HasPrefix(output, []byte("{")) || !bytes.Contains(output, []byte(`"tags"`)) {
		return nil, nil
	}
	if r.Cut {
		return nil, fmt.Errorf("tags: the command printed more than %d bytes", maxOutput)
	}
	if err := expansion.JSON(output, 4*maxTags); err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	var printed struct {
		Tags map[string]string `json:"tags"`
	}
	if err := json.Unmarshal(output, &printed); err != nil {
		return nil, fmt.Errorf(`tags: the command did not print {"tags": {"KEY": "VALUE"}}: %w`, err)
	}
	if len(printed.Tags) > maxTags {
		return nil, fmt.Errorf("tags: %d are printed, at most %d are allowed", len(printed.Tags), maxTags)
	}
	for key, value := range printed.Tags {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return nil, fmt.Errorf("tags: invalid key %.100q: %s", key, wrong[0])
		}
		if len(value) > maxTagValue {
			return nil, fmt.Errorf("tags: the value of %q is longer than %d bytes", key, maxTagValue)
		}
	}
	return printed.Tags, nil
}
