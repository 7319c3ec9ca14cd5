package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"waybill.dev/waybill/sync/source/address"
)

// ingest writes a pack into a generation and indexes it. Nothing is visible to readers before all
// of it is in place: files are written under temporary names, and the pack, by which readers find
// the index, is renamed last.
func (in *intake) ingest(ctx context.Context, g *generation, pack io.Reader) error {
	packs := filepath.Join(g.dir, "objects", "pack")
	f, err := os.CreateTemp(packs, temporaryPack)
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	room := in.limits.MirrorBytes - g.bytes
	size, err := io.Copy(charged{f, in.quota}, io.LimitReader(pack, room+1))
	if err != nil {
		return fmt.Errorf("receive pack: %w", err)
	}
	if size > room {
		return limitError("MirrorBytes", in.limits.MirrorBytes, "the repository is too large")
	}
	found, err := scan(heeding{f, ctx}, in.limits)
	if err != nil || found.objects == 0 {
		return err
	}
	if err := in.turn.acquire(ctx); err != nil {
		return err
	}
	defer in.turn.release()
	if err := thicken(ctx, f, found, g); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	if err := in.quota.take(info.Size() - size + int64(found.objects)*indexedObject); err != nil {
		return err
	}
	if err := index(ctx, f, packs); err != nil {
		return err
	}
	g.added(size)
	return nil
}

// intake is shared by all fetches of a Store.
type intake struct {
	limits Limits
	guard  address.Guard
	quota  *quota
	// turn is held while a pack is indexed, which is what takes memory. A pack that exceeds the
	// limits never gets it.
	turn lock
}

// heeding is a file whose reads fail once a context has ended: a pack that is read in small pieces
// may take long to unpack.
type heeding struct {
	io.ReadSeeker
	ctx context.Context
}

// Read implements io.Reader.
func (h heeding) Read(p []byte) (int, error) {
	if err := h.ctx.Err(); err != nil {
		return 0, err
	}
	return h.ReadSeeker.Read(p)
}

// temporaryPack is the pattern for packs that are not in place yet, as git names them; what a
// killed process left behind is recognised by it.
const temporaryPack = "tmp_pack_*"

// contents is what scan finds in a pack.
type contents struct {
	objects uint32
	// bases are the objects that deltas name by hash, not by offset in the pack.
	bases []plumbing.Hash
}

// scan reads the headers of all objects, and rejects a pack that would need more memory or time
// than the limits allow before anything is unpacked.
func scan(f io.ReadSeeker, l Limits) (contents, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return contents{}, err
	}
	s := packfile.NewScanner(f)
	_, objects, err := s.Header()
	if err != nil {
		return contents{}, fmt.Errorf("read pack: %w", err)
	}
	if int64(objects) > int64(l.Objects) {
		return contents{}, limitError("Objects", int64(l.Objects), fmt.Sprintf("the revision has %d files and directories", objects))
	}
	found, unpacked := contents{objects: objects}, int64(0)
	for range objects {
		header, size, err := next(s, l)
		if err != nil {
			return contents{}, fmt.Errorf("read pack: %w", err)
		}
		if unpacked += size; unpacked > l.UnpackedBytes {
			return contents{}, limitError("UnpackedBytes", l.UnpackedBytes, "the revision is too large once it is unpacked")
		}
		if header.Type == plumbing.REFDeltaObject {
			found.bases = append(found.bases, header.Reference)
		}
	}
	return found, nil
}

// next moves past the next object and returns its unpacked size; for a delta, the larger of its own
// size and the size of its result. An object that is too large is not unpacked.
func next(s *packfile.Scanner, l Limits) (*packfile.ObjectHeader, int64, error) {
	header, err := s.NextObjectHeader()
	if err != nil {
		return nil, 0, err
	}
	if err := l.file(header.Length); err != nil {
		return nil, 0, err
	}
	start := &prefix{}
	if _, _, err := s.NextObject(start); err != nil {
		return nil, 0, err
	}
	if !header.Type.IsDelta() {
		return header, header.Length, nil
	}
	// A delta begins with the size of its base and the size of its result, in
	// seven-bit groups.
	_, n := groups(start.head[:start.n])
	result, _ := groups(start.head[n:start.n])
	return header, max(header.Length, result), l.file(result)
}

// file rejects a file of a pack that is too large; a negative size is one that does not fit into an
// int64.
func (l Limits) file(size int64) error {
	if size >= 0 && size <= l.FileBytes {
		return nil
	}
	return limitError("FileBytes", l.FileBytes, fmt.Sprintf(
		"the revision has a file of %d bytes, and the server does not support leaving it out (uploadpack.allowFilter)", uint64(size)))
}

// prefix keeps the first bytes written to it.
type prefix struct {
	head [20]byte
	n    int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.head[p.n:], b)
	return len(b), nil
}

// groups decodes a number in little-endian groups of seven bits and returns how many bytes it took.
func groups(b []byte) (value int64, n int) {
	for n < len(b) {
		c := b[n]
		value |= int64(c&0x7f) << (7 * n)
		n++
		if c&0x80 == 0 {
			break
		}
	}
	return value, n
}

// index writes the index of a pack and puts both in place.
func index(ctx context.Context, f *os.File, packs string) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	writer := &idxfile.Writer{}
	parser, err := packfile.NewParser(packfile.NewScanner(heeding{f, ctx}), writer)
	if err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	checksum, err := parser.Parse()
	if err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	idx, err := writer.Index()
	if err != nil {
		return fmt.Errorf("index pack: %w", err)
	}
	base := filepath.Join(packs, "pack-"+checksum.String())
	if err := writeIndex(idx, packs, base+".idx"); err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(f.Name(), base+".pack")); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	return nil
}

func writeIndex(idx *idxfile.MemoryIndex, dir, name string) error {
	f, err := os.CreateTemp(dir, temporaryPack)
	if err != nil {
		return fmt.Errorf("write pack index: %w", err)
	}
	_, err = idxfile.NewEncoder(f).Encode(idx)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write pack index: %w", err)
	}
	return nil
}
