package cache

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// A dump of mosdns v5 is a gzip stream with foreignName in its header. In it are
// blocks: octets of the block (uint64, the high octet first), and the block, which
// is a message of Protocol Buffers:
//
//	message Block { repeated Entry entries = 1; }
//	message Entry {
//	  bytes key = 1;               // flags of the query, type, name: all that the message has too
//	  bytes msg = 2;               // the response, with the TTLs that it came with
//	  int64 cache_expiration = 3;  // when mosdns would have dropped it, seconds since 1970
//	  int64 msg_expiration = 4;    // the end of its life
//	  int64 msg_stored = 5;        // which mosdns leaves at 0
//	}
const (
	foreignName  = "mosdns_cache_v2"
	foreignBlock = 1 << 20 // as mosdns has it
	foreignMost  = 1 << 30 // octets unpacked: a small file can hold very many zeros
)

// LoadAny is Load of a dump of this program, or of one of mosdns v5. Of the latter
// the entries end when they would have ended there; how long they may be used
// behind that is for this cache. Messages in it that are no sound responses are
// left out.
func (c *Cache) LoadAny(r io.ReadSeeker, now time.Duration, wall time.Time) (n int, err error) {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("reading a cache dump: %w", err)
	}
	var magic [2]byte
	_, err = io.ReadFull(r, magic[:])
	if _, e := r.Seek(start, io.SeekStart); e != nil {
		return 0, fmt.Errorf("reading a cache dump: %w", e)
	}
	if err != nil || magic != [2]byte{0x1f, 0x8b} {
		return c.Load(r, now, wall)
	}
	f := foreign{loader{c: c, now: now, wall: wall, read: c.readings.get()}}
	defer c.readings.put(f.read)
	if err = f.pass(r); err != nil {
		return 0, fmt.Errorf("reading a cache dump of mosdns: %w", err)
	}
	if _, err = r.Seek(start, io.SeekStart); err != nil {
		return 0, fmt.Errorf("reading a cache dump again: %w", err)
	}
	f.store = true
	if err = f.pass(r); err != nil {
		return f.kept, fmt.Errorf("reading a cache dump that changed meanwhile: %w", err)
	}
	return f.kept, nil
}

// foreign reads a dump of mosdns.
type foreign struct{ loader }

// pass reads all of it, and stores what is in it where store is set.
func (f *foreign) pass(r io.Reader) error {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return err
	}
	if z.Name != foreignName {
		return ErrNoDump
	}
	z.Multistream(false)
	f.r = io.LimitReader(z, foreignMost)
	for number := 1; ; number++ {
		var head [8]byte
		_, err := io.ReadFull(f.r, head[:])
		switch {
		case err == io.EOF && f.r.(*io.LimitedReader).N == 0:
			return fmt.Errorf("more than %d octets: %w", foreignMost, ErrEntry)
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("block %d: %w", number, ErrShort)
		case err != nil:
			return fmt.Errorf("block %d: %w", number, err)
		}
		size := binary.BigEndian.Uint64(head[:])
		if size > foreignBlock {
			return fmt.Errorf("block %d: %d octets: %w", number, size, ErrEntry)
		}
		if err = f.readBlock(int(size)); err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
}

func (f *foreign) readBlock(size int) error {
	block, err := f.next(size)
	if err != nil {
		return err
	}
	for len(block) > 0 {
		var p field
		if !p.next(&block) {
			return ErrEntry
		}
		if p.number != 1 {
			continue
		}
		if p.data == nil || !f.message(p.data) {
			return ErrEntry
		}
	}
	return nil
}

// message reads an entry; it is false where that is malformed.
func (f *foreign) message(b []byte) bool {
	var msg []byte
	var end, stored int64
	for len(b) > 0 {
		var p field
		if !p.next(&b) {
			return false
		}
		switch p.number {
		case 2:
			msg = p.data
		case 4:
			end = int64(p.value)
		case 5:
			stored = int64(p.value)
		}
	}
	f.response(msg, end, stored)
	return true
}

// response stores a response that is sound.
func (f *foreign) response(msg []byte, end, stored int64) {
	at := wire.UncompressedEnd(msg, min(wire.HeaderSize, len(msg)))
	if at < 0 || at+4 > len(msg) || at < wire.HeaderSize {
		return
	}
	var k Key
	k.Name = wire.Name(msg[wire.HeaderSize:at])
	k.Hash = wire.HashName(k.Name)
	k.Type, k.Class = binary.BigEndian.Uint16(msg[at:]), binary.BigEndian.Uint16(msg[at+2:])
	k.CD = binary.BigEndian.Uint16(msg[2:])&wire.FlagCD != 0
	if f.read.read(&k, msg, &f.c.limits) == Kept {
		f.put(&dumped{age: f.age(end, stored)}, &k)
	}
}

// age is how long ago the response that was read was stored, as nanoseconds.
// Without a time of storing it follows from the end of its life, and without that
// it is as if it had come now.
func (f *foreign) age(end, stored int64) int64 {
	wall := f.wall.Unix()
	switch {
	case stored > 0:
	case end > 0:
		stored = end - int64(f.read.life)
	default:
		return 0
	}
	return min(max(wall-stored, 0), math.MaxInt64/int64(time.Second)) * int64(time.Second)
}

// field is one field of a message of Protocol Buffers.
type field struct {
	number uint64
	value  uint64 // of a varint
	data   []byte // of octets; never nil there
}

// next reads a field from the front of b. It is false where b is malformed. Fields
// of fixed size are skipped; groups, which nobody writes any more, are malformed.
func (p *field) next(b *[]byte) bool {
	tag, n := binary.Uvarint(*b)
	if n <= 0 {
		return false
	}
	rest := (*b)[n:]
	*p = field{number: tag >> 3}
	skip := 0
	switch tag & 7 {
	case 0:
		if p.value, skip = binary.Uvarint(rest); skip <= 0 {
			return false
		}
	case 1:
		skip = 8
	case 2:
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return false
		}
		skip = n + int(size)
		p.data = rest[n:skip:skip]
	case 5:
		skip = 4
	default:
		return false
	}
	if skip > len(rest) || p.number == 0 {
		return false
	}
	*b = rest[skip:]
	return true
}
