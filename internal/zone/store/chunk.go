package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
)

// chunkSize is the octets at which a chunk ends. An edit writes one chunk anew, a
// zone of 1,000,000 records has some 400: with 64 KiB both cost little. A name's
// RRsets are never parted, so a chunk may be longer.
const chunkSize = 64 << 10

// sumSize is the octets of the checksum that chunks and differences end with.
const sumSize = 4

// chunk is RRsets in order under the key of the first one's owner.
type chunk struct{ key, data []byte }

// seal appends the checksum (CRC-32C) of data.
func seal(data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// unseal checks and takes off the checksum.
func unseal(data []byte) ([]byte, error) {
	n := len(data) - sumSize
	if n < 0 || crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[n:]) {
		return nil, fmt.Errorf("comparing a checksum: %w", ErrDamaged)
	}
	return data[:n:n], nil
}

// chunker makes chunks of sets that come in order.
type chunker struct {
	done []chunk
	open []byte    // of the chunk at hand
	key  []byte    // of the chunk at hand
	last wire.Name // owner of the set before
}

// add takes the next set. Nothing of it is kept.
func (c *chunker) add(s *set) {
	if len(c.open) >= chunkSize && !wire.EqualFold(c.last, s.name) {
		c.end()
	}
	if len(c.open) == 0 {
		c.key = nameKey(nil, s.name)
		c.open = make([]byte, 0, chunkSize+chunkSize/8)
	}
	c.open = appendSet(c.open, s)
	c.last = append(c.last[:0], s.name...)
}

// end closes the chunk at hand.
func (c *chunker) end() {
	if len(c.open) > 0 {
		c.done = append(c.done, chunk{c.key, seal(c.open)})
		c.open = nil
	}
}

// put writes the chunks into a bucket.
func (c *chunker) put(b *bbolt.Bucket) error {
	c.end()
	b.FillPercent = 1 // they come in order
	for i := range c.done {
		if err := b.Put(c.done[i].key, c.done[i].data); err != nil {
			return fmt.Errorf("writing records: %w", err)
		}
	}
	return nil
}

// walker goes over sets in order.
type walker struct {
	more func() []byte // the next sealed chunk, nil at the end
	rest []byte
	set  set // the present one
	err  error
}

// next moves to the next set; false at the end and after an error.
func (w *walker) next() bool {
	for len(w.rest) == 0 {
		data := w.more()
		if data == nil || w.err != nil {
			return false
		}
		if w.rest, w.err = unseal(data); w.err != nil {
			return false
		}
	}
	var ok, whole bool
	w.set.name, w.set.typ, w.rest, ok = readKey(w.rest)
	w.set.body, w.rest, whole = readBody(w.rest)
	if !ok || !whole {
		w.err = fmt.Errorf("reading a chunk: %w", ErrDamaged)
		return false
	}
	return true
}

// walkBucket goes over a bucket of chunks; nil has none.
func walkBucket(b *bbolt.Bucket) *walker {
	if b == nil {
		return &walker{more: func() []byte { return nil }}
	}
	cursor, begun := b.Cursor(), false
	return &walker{more: func() []byte {
		var v []byte
		if begun {
			_, v = cursor.Next()
		} else {
			_, v = cursor.First()
			begun = true
		}
		return v
	}}
}

// walkChunks goes over chunks in memory.
func walkChunks(chunks []chunk) *walker {
	i := 0
	return &walker{more: func() []byte {
		if i == len(chunks) {
			return nil
		}
		i++
		return chunks[i-1].data
	}}
}

// overlay calls each with the sets of w as changes leave them, in order.
func overlay(w *walker, changes []change, each func(*set) error) error {
	var at set
	for w.next() {
		n := 0 // changes in front of the set
		for n < len(changes) && compareSets(changes[n].set(nil), &w.set) < 0 {
			n++
		}
		if err := emit(changes[:n], each); err != nil {
			return err
		}
		changes, at = changes[n:], w.set
		if len(changes) > 0 && compareSets(changes[0].set(nil), &w.set) == 0 {
			at.body, changes = changes[0].new, changes[1:]
		}
		if at.body == nil {
			continue
		}
		if err := each(&at); err != nil {
			return err
		}
	}
	if w.err != nil {
		return w.err
	}
	return emit(changes, each)
}

// emit calls each with what changes make.
func emit(changes []change, each func(*set) error) error {
	for i := range changes {
		c := &changes[i]
		if c.new == nil {
			continue
		}
		if err := each(c.set(c.new)); err != nil {
			return err
		}
	}
	return nil
}

// patch writes changes, in order, into a bucket of chunks: each chunk that one of
// them falls into is written anew.
func patch(b *bbolt.Bucket, changes []change) error {
	for len(changes) > 0 {
		key, data, next := chunkOf(b, nameKey(nil, changes[0].name))
		if key == nil {
			return fmt.Errorf("finding a chunk: %w", ErrDamaged)
		}
		n := 1
		for n < len(changes) && (next == nil || bytes.Compare(nameKey(nil, changes[n].name), next) < 0) {
			n++
		}
		if err := patchChunk(b, chunk{key, data}, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// patchChunk writes one chunk anew, as one or several or none.
func patchChunk(b *bbolt.Bucket, old chunk, changes []change) error {
	var made chunker
	err := overlay(walkChunks([]chunk{old}), changes, func(s *set) error { made.add(s); return nil })
	if err != nil {
		return err
	}
	if err := b.Delete(old.key); err != nil {
		return fmt.Errorf("replacing records: %w", err)
	}
	return made.put(b)
}

// chunkOf is the chunk that a name belongs into, and the key of the next one. They
// are copies: the bucket is about to change.
func chunkOf(b *bbolt.Bucket, name []byte) (key, data, next []byte) {
	c := b.Cursor()
	k, v := c.Seek(name)
	switch {
	case k == nil:
		k, v = c.Last()
	case !bytes.Equal(k, name):
		k, v = c.Prev()
	}
	if k == nil {
		return nil, nil, nil
	}
	key, data = bytes.Clone(k), bytes.Clone(v)
	if n, _ := c.Next(); n != nil {
		next = bytes.Clone(n)
	}
	return key, data, next
}
