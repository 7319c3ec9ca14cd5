package kustomize

import "cmp"

// Limits bound what a build may read and make. Zero fields take the value of DefaultLimits. The
// Problem names the limit that was hit.
//
// They do not bound the time and the memory that a build takes, which a few patches or replacements
// can make grow without end: package isolated does.
type Limits struct {
	// FileBytes is the size of one file.
	FileBytes int64
	// TotalBytes is the size of everything that kustomize reads. A file counts each time it is
	// read: a base used by two overlays counts twice.
	TotalBytes int64
	// Reads is how many times kustomize may read a file.
	Reads int
	// Links is the number of symbolic links in one path.
	Links int
	// AliasNodes and AliasBytes are how many values, and bytes of text, the aliases of one document
	// may stand for.
	AliasNodes, AliasBytes int
	// Objects is the number of objects, Values that of the values in all of them, and ObjectBytes the
	// size of the texts in these.
	Objects, Values, ObjectBytes int
	// Depth is the number of maps and lists around a value.
	Depth int
}

// DefaultLimits returns limits that no sane kustomization reaches: files of 5 MiB, 32 MiB and
// 20,000 reads in total, 40 links, 50,000 aliased values of 5 MiB, 20,000 objects with a million
// values of 32 MiB, 100 levels.
func DefaultLimits() Limits {
	return Limits{
		FileBytes: 5 << 20, TotalBytes: 32 << 20, Reads: 20_000, Links: 40, AliasNodes: 50_000, AliasBytes: 5 << 20,
		Objects: 20_000, Values: 1_000_000, ObjectBytes: 32 << 20, Depth: 100,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		FileBytes:   cmp.Or(l.FileBytes, d.FileBytes),
		TotalBytes:  cmp.Or(l.TotalBytes, d.TotalBytes),
		Reads:       cmp.Or(l.Reads, d.Reads),
		Links:       cmp.Or(l.Links, d.Links),
		AliasNodes:  cmp.Or(l.AliasNodes, d.AliasNodes),
		AliasBytes:  cmp.Or(l.AliasBytes, d.AliasBytes),
		Objects:     cmp.Or(l.Objects, d.Objects),
		Values:      cmp.Or(l.Values, d.Values),
		ObjectBytes: cmp.Or(l.ObjectBytes, d.ObjectBytes),
		Depth:       cmp.Or(l.Depth, d.Depth),
	}
}
