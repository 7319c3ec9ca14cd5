package plain

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
		FileBytes:   positive(l.FileBytes, d.FileBytes),
		TotalBytes:  positive(l.TotalBytes, d.TotalBytes),
		Objects:     positive(l.Objects, d.Objects),
		Values:      positive(l.Values, d.Values),
		Depth:       positive(l.Depth, d.Depth),
		Nodes:       positive(l.Nodes, d.Nodes),
		IgnoreBytes: positive(l.IgnoreBytes, d.IgnoreBytes),
		AliasNodes:  positive(l.AliasNodes, d.AliasNodes),
		AliasBytes:  positive(l.AliasBytes, d.AliasBytes),
	}
}

func positive[T int | int64](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}
