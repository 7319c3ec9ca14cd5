package git

import (
	"compress/zlib"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// thicken completes a thin pack, whose deltas refer to objects that only the mirror has: it appends
// those objects, so that the pack can be read by itself. This is what git does with such packs
// (index-pack --fix-thin).
func thicken(ctx context.Context, f *os.File, found contents, g *generation) error {
	if len(found.bases) == 0 {
		return nil
	}
	o, ok := g.retain()
	if !ok {
		return errors.New("complete pack: the mirror is being removed")
	}
	defer g.release(o)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := f.Seek(-hash.Size, io.SeekEnd); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	count, err := appendBases(ctx, f, found, o.storage)
	if err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	return sign(f, count)
}

// appendBases writes each base that is in the mirror once, and returns the number of objects that
// the pack then has. A base that is not in the mirror must be in the pack.
func appendBases(ctx context.Context, w io.Writer, found contents, from storer.EncodedObjectStorer) (uint32, error) {
	count := found.objects
	done := make(map[plumbing.Hash]bool)
	for _, base := range found.bases {
		if done[base] {
			continue
		}
		done[base] = true
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		object, err := from.EncodedObject(plumbing.AnyObject, base)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := appendObject(w, object); err != nil {
			return 0, err
		}
		count++
	}
	return count, nil
}

// appendObject writes an object in the pack format: its type and size, four bits of it and then
// groups of seven, and its compressed content.
func appendObject(w io.Writer, object plumbing.EncodedObject) error {
	size := object.Size()
	header := []byte{byte(object.Type())<<4 | byte(size&0x0f)}
	for size >>= 4; size > 0; size >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(size&0x7f))
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	r, err := object.Reader()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	z := zlib.NewWriter(w)
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	return z.Close()
}

// sign corrects the number of objects in the header of a pack and writes the checksum at its end,
// which is the current position of f.
func sign(f *os.File, count uint32) error {
	const countAt = 8
	if _, err := f.WriteAt(binary.BigEndian.AppendUint32(nil, count), countAt); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	sum := hash.New(crypto.SHA1)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, end)); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	return f.Truncate(end + hash.Size)
}
