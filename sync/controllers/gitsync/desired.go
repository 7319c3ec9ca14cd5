package gitsync

import "waybill.dev/waybill/sync/manifest"

// desired is what the clusters are to have: the newest revision that could be rendered. It goes on being
// delivered while the repository cannot be read.
type desired struct {
	// source has the revision; digest identifies what it renders to.
	source source
	digest string
	// rendered is kept only until it has been handed to every cluster.
	rendered *rendered
	// count, problems and ignored are those of the last rendering.
	count    int
	problems []manifest.Problem
	ignored  string
	// absent says that the mirror has lost the source.
	absent bool
	// resumed says that it was tried to continue with the revision that the status names.
	resumed bool
}

// rendered is the content of a revision.
type rendered struct {
	objects  []manifest.Object
	problems []manifest.Problem
	// ignored says what of the objects has no effect; empty for nothing.
	ignored string
}

// have returns the digest that need not be rendered again.
func (d *desired) have() string {
	if d.absent {
		return ""
	}
	return d.digest
}

// take records what was loaded. needed says whether a cluster waits for objects that are not in memory.
func (d *desired) take(result loaded, needed func() bool) {
	if result.rendered == nil {
		// Only the mirror that the revision was rendered from is known to have it: with other
		// credentials there is another.
		d.source.revision = result.source.revision
		return
	}
	changed := result.digest != d.digest
	d.source, d.absent = result.source, false
	if changed {
		d.digest, d.rendered = result.digest, nil
	}
	d.count, d.problems, d.ignored = len(result.rendered.objects), result.rendered.problems, result.rendered.ignored
	if changed || needed() {
		d.rendered = result.rendered
	}
}
