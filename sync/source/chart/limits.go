package chart

// Limits bounds what is accepted from a source and what is kept of it. All sizes are in bytes.
type Limits struct {
	// IndexBytes is the largest repository index.
	IndexBytes int64
	// IndexVersions is how many chart versions an index may list.
	IndexVersions int64
	// IndexEntryBytes is how large one chart version may be in an index; also how large an index may
	// be that cannot be read one version at a time.
	IndexEntryBytes int64
	// ArchiveBytes is the largest chart archive, as downloaded.
	ArchiveBytes int64
	// UnpackedBytes is how much one chart may unpack to, including the charts inside it.
	UnpackedBytes int64
	// FileBytes is the largest single file of a chart.
	FileBytes int64
	// Files is how many files one chart may hold, including those of the charts inside it.
	Files int64
	// Values is how many values the files hold that are decoded, such as values.yaml and Chart.yaml,
	// including those of the charts inside a chart, as far as that is known without decoding them.
	Values int64
	// IgnoreBytes is the largest .helmignore: each of its patterns is compared with each file.
	IgnoreBytes int64
	// NestedCharts is how deep charts may be packed inside one another, or depend on one another by
	// path.
	NestedCharts int64
	// PathDepth is how many directories deep a file may lie in a chart.
	PathDepth int64
	// Tags is how many tags of an OCI repository are searched for a version.
	Tags int64

	// DiskBytes is how much the archives kept on disk may take; the least recently used go first.
	DiskBytes int64
	// MemoryBytes is how much parsed charts may take, measured by their files and by how many values
	// they hold; the least recently used go first.
	MemoryBytes int64
	// IndexMemoryBytes is how much parsed indexes may take, measured approximately.
	IndexMemoryBytes int64
}

// DefaultLimits fits every public chart that we know, and a process of 150 MiB.
func DefaultLimits() Limits {
	return Limits{
		IndexBytes:      50 << 20,
		IndexVersions:   200_000,
		IndexEntryBytes: 512 << 10,
		ArchiveBytes:    20 << 20,
		UnpackedBytes:   64 << 20,
		FileBytes:       5 << 20,
		Files:           10_000,
		Values:          300_000,
		IgnoreBytes:     64 << 10,
		NestedCharts:    8,
		PathDepth:       32,
		Tags:            20_000,

		DiskBytes:        512 << 20,
		MemoryBytes:      24 << 20,
		IndexMemoryBytes: 16 << 20,
	}
}
