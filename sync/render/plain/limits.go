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
	// Depth is the number of directories above a file, and of maps and lists
	// around a value; more is a Problem.
	Depth int
	// AliasNodes and AliasBytes are how many values, and bytes of text, the aliases of one document
	// may stand for, which is how small documents become large; more is a Problem.
	AliasNodes, AliasBytes int
}

// DefaultLimits returns limits that no sane set of manifests reaches: files of 5 MiB, 32 MiB in
// total, 20,000 objects, 100 levels, 50,000 aliased values of 5 MiB.
func DefaultLimits() Limits {
	return Limits{
		FileBytes: 5 << 20, TotalBytes: 32 << 20, Objects: 20_000, Depth: 100, AliasNodes: 50_000, AliasBytes: 5 << 20,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		FileBytes:  positive(l.FileBytes, d.FileBytes),
		TotalBytes: positive(l.TotalBytes, d.TotalBytes),
		Objects:    positive(l.Objects, d.Objects),
		Depth:      positive(l.Depth, d.Depth),
		AliasNodes: positive(l.AliasNodes, d.AliasNodes),
		AliasBytes: positive(l.AliasBytes, d.AliasBytes),
	}
}

func positive[T int | int64](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}
