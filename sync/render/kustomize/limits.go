package kustomize

// Limits bound what a build may read and produce. Zero fields take the value of DefaultLimits. The
// Problem names the limit that was hit.
type Limits struct {
	// FileBytes is the size of one file.
	FileBytes int64
	// TotalBytes is the size of everything that kustomize reads. A file counts each time it is
	// read: a base used by two overlays counts twice.
	TotalBytes int64
	// Reads is how many times kustomize may read a file.
	Reads int
	// Objects is the number of objects.
	Objects int
	// Links is the number of symbolic links in one path.
	Links int
	// AliasNodes and AliasBytes are how many values, and bytes of text, the aliases of one document
	// may stand for.
	AliasNodes, AliasBytes int
	// Nodes is the number of values in all files that are parsed, as estimated before.
	Nodes int
	// Changes is the number of patches, operations of JSON patches, targets of replacements, fields of
	// configurations and the like, times the number of objects that each may have to be held against if
	// it does not name one: a build cannot be interrupted.
	Changes int
	// Comparisons is the number of patches times that of objects: kustomize compares each object with
	// what a patch is for, also if that names one.
	Comparisons int
	// Growth is how many bytes patches, replacements, labels and the like write, times the number of
	// objects that each may be written to.
	Growth int
	// Replacements is the number of different replacements.
	Replacements int
	// Depth is the number of maps and lists around a value.
	Depth int
}

// DefaultLimits returns limits that no sane kustomization reaches: files of 5 MiB, 32 MiB and
// 20,000 reads in total, 20,000 objects, 40 links, 50,000 aliased values of 5 MiB,
// 2 million values, 20 million changes, which write 128 MiB, 30 million comparisons, 500 replacements, 100 levels.
func DefaultLimits() Limits {
	return Limits{
		FileBytes: 5 << 20, TotalBytes: 32 << 20, Reads: 20_000, Objects: 20_000, Links: 40,
		AliasNodes: 50_000, AliasBytes: 5 << 20, Nodes: 2_000_000, Changes: 20_000_000, Comparisons: 30_000_000, Growth: 128 << 20, Replacements: 500, Depth: 100,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		FileBytes:    positive(l.FileBytes, d.FileBytes),
		TotalBytes:   positive(l.TotalBytes, d.TotalBytes),
		Reads:        positive(l.Reads, d.Reads),
		Objects:      positive(l.Objects, d.Objects),
		Links:        positive(l.Links, d.Links),
		AliasNodes:   positive(l.AliasNodes, d.AliasNodes),
		AliasBytes:   positive(l.AliasBytes, d.AliasBytes),
		Nodes:        positive(l.Nodes, d.Nodes),
		Changes:      positive(l.Changes, d.Changes),
		Comparisons:  positive(l.Comparisons, d.Comparisons),
		Growth:       positive(l.Growth, d.Growth),
		Replacements: positive(l.Replacements, d.Replacements),
		Depth:        positive(l.Depth, d.Depth),
	}
}

func positive[T int | int64](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}
