package cache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// A dump, all numbers with the low octet first:
//
//	head:   "WMCACHE", version (1 octet), wall clock (int64, ns since 1970), checksum
//	block:  octets of its entries (uint32), how many entries (uint32), entries, checksum
//	end:    0 (uint32), how many entries in all (uint32), checksum
//	entry:  dumped, below; a scope where flagged; length (uint16); message
//
// A checksum is CRC-32C of all from the checksum before. A message has its DNSSEC
// records and no OPT; its TTLs are those it had when it was stored.
const (
	dumpMagic   = "WMCACHE"
	dumpVersion = 1
	headSize    = len(dumpMagic) + 1 + 8 + 4
	blockHead   = 8
	blockFull   = 256 << 10                                                            // a block ends with the bucket that reaches this
	blockMost   = blockFull + len(bucket{})*(dumpedSize+scopeDumped+2+wire.MaxMessage) // a bucket goes in whole
)

// dumped is the fixed part of an entry in a dump.
type dumped struct {
	view          uint32
	upstream, ede uint16
	age           int64 // nanoseconds since it was stored
	flags, freq   uint8
}

const (
	dumpedSize  = 18
	scopeDumped = 18

	dumpCD     = 1
	dumpScoped = 2
)

func (d *dumped) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, d.view)
	b = binary.LittleEndian.AppendUint16(b, d.upstream)
	b = binary.LittleEndian.AppendUint16(b, d.ede)
	b = binary.LittleEndian.AppendUint64(b, uint64(d.age))
	return append(b, d.flags, d.freq)
}

// checksums is CRC-32C.
var checksums = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, checksums))
}

// Dump writes all entries that are not beyond MaxStale to w and tells how many.
// wall is the wall clock at now: a later Load counts the time in between. Readers
// and writers go on meanwhile. Markers and failures are not worth keeping.
func (c *Cache) Dump(w io.Writer, now time.Duration, wall time.Time) (n int, err error) {
	head := append([]byte(dumpMagic), dumpVersion)
	head = binary.LittleEndian.AppendUint64(head, uint64(wall.UnixNano()))
	if _, err = w.Write(sum(head)); err != nil {
		return 0, fmt.Errorf("writing the head of a cache dump: %w", err)
	}
	d := dumper{w: w, block: make([]byte, blockHead, blockMost+4)}
	for i := range c.shards {
		s := &c.shards[i]
		for j := range s.buckets {
			c.visit(s, j, func(e *entry, v uint64) {
				if !e.dead(now, c.conf.MaxStale) && e.flags&flagFailure == 0 {
					d.add(e, slotFreq(v), now)
				}
			})
			if err = d.flush(blockFull); err != nil {
				return 0, err
			}
		}
	}
	if err = d.flush(1); err != nil {
		return 0, err
	}
	end := binary.LittleEndian.AppendUint32(make([]byte, 4, blockHead+4), uint32(d.total))
	if _, err = w.Write(sum(end)); err != nil {
		return 0, fmt.Errorf("writing the end of a cache dump: %w", err)
	}
	return d.total, nil
}

// dumper collects entries until a block is full.
type dumper struct {
	w            io.Writer
	block        []byte // room for its head in front
	count, total int
}

// add adds an entry. It is called inside an epoch and does not write.
func (d *dumper) add(e *entry, freq int, now time.Duration) {
	f := dumped{view: uint32(e.what), ede: e.ede, age: max(int64(now)-e.stored, 0), freq: uint8(freq)}
	if e.flags&flagCD != 0 {
		f.flags |= dumpCD
	}
	if e.flags&flagScoped != 0 {
		f.flags |= dumpScoped
	}
	d.block = f.append(d.block)
	if e.flags&flagScoped != 0 {
		s := e.scope()
		family := uint8(6)
		if s.v4 {
			family = 4
		}
		d.block = append(append(d.block, s.addr[:]...), s.bits, family)
	}
	msg, _ := e.form(true)
	d.block = binary.LittleEndian.AppendUint16(d.block, uint16(len(msg)))
	d.block = append(d.block, msg...)
	d.count++
}

// flush writes the block where it has that many octets.
func (d *dumper) flush(size int) error {
	if len(d.block)-blockHead < size {
		return nil
	}
	binary.LittleEndian.PutUint32(d.block, uint32(len(d.block)-blockHead))
	binary.LittleEndian.PutUint32(d.block[4:], uint32(d.count))
	if _, err := d.w.Write(sum(d.block)); err != nil {
		return fmt.Errorf("writing a block of a cache dump: %w", err)
	}
	d.total += d.count
	d.block, d.count = d.block[:blockHead], 0
	return nil
}
