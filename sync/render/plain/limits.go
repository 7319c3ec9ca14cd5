package plain

import "cmp"

// Limits bound what is accepted. Zero fields take the value of DefaultLimits. The Problem or error
// names the limit that was hit.
type Limits struct {
	// FileBytes is the size of one file; a larger one is a Problem.
	FileBytes int64
	// TotalBytes is the size of all files; more is an error.
	TotalBytes int64
	// Objects is the number of objects; more is an error.
	Objects int
	// Values is the number of values in all documents, with what aliases stand for; more is an error.
	Values int
	// Depth is the number of directories above a file, and of maps and lists
	// around a value; more is a Problem.
	Depth int
	// Nodes is the number of values in one document, as estimated before it is parsed; more is a
	// Problem.
	Nodes int
	// IgnoreBytes is the size of all ignore files together: each line is held against each file. A
	// directory with one that is too much is a Problem, and nothing in it is rendered.
	IgnoreBytes int64
	// AliasNodes and AliasBytes are how many values, and bytes of text, the aliases of one document
	// may stand for, which is how small documents become large; more is a Problem.
	AliasNodes, AliasBytes int
}

// DefaultLimits returns limits that no sane set of manifests reaches: files of 5 MiB, 32 MiB in
// total, 20,000 objects with a million values, 100 levels, 400,000 values in one document, ignore files of
// 64 KiB, 50,000 aliased values of 5 MiB.
func DefaultLimits() Limits {
	return Limits{
		FileBytes: 5 << 20, TotalBytes: 32 << 20, Objects: 20_000, Values: 1_000_000, Depth: 100, Nodes: 400_000, IgnoreBytes: 64 << 10,
		AliasNodes: 50_000, AliasBytes: 5 << 20,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		FileBytes:   cmp.Or(l.FileBytes, d.FileBytes),
		TotalBytes:  cmp.Or(l.TotalBytes, d.TotalBytes),
		Objects:     cmp.Or(l.Objects, d.Objects),
		Values:      cmp.Or(l.Values, d.Values),
		Depth:       cmp.Or(l.Depth, d.Depth),
		Nodes:       cmp.Or(l.Nodes, d.Nodes),
		IgnoreBytes: cmp.Or(l.IgnoreBytes, d.IgnoreBytes),
		AliasNodes:  cmp.Or(l.AliasNodes, d.AliasNodes),
		AliasBytes:  cmp.Or(l.AliasBytes, d.AliasBytes),
	}
}
