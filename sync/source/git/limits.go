package git

import "fmt"

// Limits bound what a repository may make us store, read and follow. Zero fields take the value of
// DefaultLimits. Exceeding a limit fails with ErrLimit and the name of the limit.
type Limits struct {
	// MirrorBytes is the size of all packs of one mirror on disk.
	MirrorBytes int64
	// StoreBytes is the size of all mirrors of a Store on disk. Where it does not suffice, unused
	// mirrors are removed, the least recently used first.
	StoreBytes int64
	// FileBytes is the size of one file. If the server supports it, larger files are not even
	// transferred, and only reading them fails. Otherwise the fetch fails, since a pack can be
	// indexed only as a whole.
	FileBytes int64
	// Objects is the number of files, directories and commits in one fetch.
	Objects int
	// UnpackedBytes is the total unpacked size of all of them.
	UnpackedBytes int64
	// Files is the number of files that one Tree lists.
	Files int
	// Depth is the number of directories above a file.
	Depth int
	// Links is the number of symbolic links followed for one path.
	Links int
	// AdvertisementBytes is the size of the server's list of references.
	AdvertisementBytes int64
	// ReferenceBytes is the size of the branches and tags in that list. All others are passed over,
	// unless one is asked for by its name.
	ReferenceBytes int64
	// NegotiationBytes is the size of what the server says before it sends a pack: where the history
	// is cut off, and which commits both sides have.
	NegotiationBytes int64
}

// DefaultLimits returns the limits for a manifest repository of any sane size: mirrors of 512 MiB,
// 8 GiB of them, files of 10 MiB, 200,000 objects and 2 GiB unpacked in a fetch, 50,000 files in a
// tree, 64 directories deep, 40 symbolic links in a path, 256 MiB of references, of which branches and
// tags take 16 MiB, and 4 MiB before a pack.
func DefaultLimits() Limits {
	return Limits{
		MirrorBytes:        512 << 20,
		StoreBytes:         8 << 30,
		FileBytes:          10 << 20,
		Objects:            200_000,
		UnpackedBytes:      2 << 30,
		Files:              50_000,
		Depth:              64,
		Links:              40,
		AdvertisementBytes: 256 << 20,
		ReferenceBytes:     16 << 20,
		NegotiationBytes:   4 << 20,
	}
}

// orDefault returns the limits with defaults for zero fields.
func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		MirrorBytes:        positive(l.MirrorBytes, d.MirrorBytes),
		StoreBytes:         positive(l.StoreBytes, d.StoreBytes),
		FileBytes:          positive(l.FileBytes, d.FileBytes),
		Objects:            positive(l.Objects, d.Objects),
		UnpackedBytes:      positive(l.UnpackedBytes, d.UnpackedBytes),
		Files:              positive(l.Files, d.Files),
		Depth:              positive(l.Depth, d.Depth),
		Links:              positive(l.Links, d.Links),
		AdvertisementBytes: positive(l.AdvertisementBytes, d.AdvertisementBytes),
		ReferenceBytes:     positive(l.ReferenceBytes, d.ReferenceBytes),
		NegotiationBytes:   positive(l.NegotiationBytes, d.NegotiationBytes),
	}
}

func positive[T int | int64](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

// limitError names the limit and what exceeded it.
func limitError(name string, most int64, what string) error {
	return fmt.Errorf("%w: %s (limit %s is %d)", ErrLimit, what, name, most)
}
