package agent

import (
	"fmt"
	"regexp"
	"strings"
)

// image is what the chart's value `image` says of an image.
type image struct{ repository, tag, digest string }

// What the schema of the chart accepts.
var (
	repositories = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	tags         = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$`)
	digests      = regexp.MustCompile(`^(sha256:[0-9a-f]{64})?$`)
)

// CheckImage returns an error if text is not the name of an image, as REPOSITORY:TAG or
// REPOSITORY@sha256:DIGEST. Nothing is one as well: that of the chart.
func CheckImage(text string) error {
	_, err := parseImage(text)
	return err
}

func parseImage(text string) (image, error) {
	if text == "" {
		return image{}, nil
	}
	i := image{}
	i.repository, i.digest, _ = strings.Cut(text, "@")
	// The port of a registry is followed by a path, a tag is not.
	if at := strings.LastIndex(i.repository, ":"); at > strings.LastIndex(i.repository, "/") {
		i.repository, i.tag = i.repository[:at], i.repository[at+1:]
	}
	if !repositories.MatchString(i.repository) || !tags.MatchString(i.tag) || !digests.MatchString(i.digest) {
		return image{}, fmt.Errorf("%q is not the name of an image: REPOSITORY:TAG or REPOSITORY@sha256:DIGEST", text)
	}
	return i, nil
}

// values are those of the chart for the image.
func (i image) values() map[string]any {
	if i.repository == "" {
		return map[string]any{}
	}
	return map[string]any{"image": map[string]any{"repository": i.repository, "tag": i.tag, "digest": i.digest}}
}

// imageIn returns the image that a chart of that version runs with those values, as its templates say it.
func imageIn(values map[string]any, version string) string {
	found, _ := values["image"].(map[string]any)
	text := func(key string) string {
		value, _ := found[key].(string)
		return value
	}
	if digest := text("digest"); digest != "" {
		return text("repository") + "@" + digest
	}
	tag := text("tag")
	if tag == "" {
		tag = version
	}
	return text("repository") + ":" + tag
}
