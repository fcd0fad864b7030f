package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Errors of Load.
var (
	ErrNoDump   = errors.New("not a cache dump")
	ErrVersion  = errors.New("a version that this program does not know")
	ErrShort    = errors.New("cut short")
	ErrChecksum = errors.New("wrong checksum")
	ErrEntry    = errors.New("malformed entry")
	ErrCount    = errors.New("wrong number of entries")
	ErrBehind   = errors.New("octets behind the end")
)

// Load puts in what Dump wrote and tells how many entries that were. The time
// between wall and the dump's wall clock has aged them; a clock that went back
// counts as no time. Entries that are beyond MaxStale by now, or that the limits
// of this cache forbid, are left out. All of r is read and checked before the
// first entry is put in: where anything is wrong, nothing is loaded. r is read
// twice where it can seek, else it is held in memory.
func (c *Cache) Load(r io.Reader, now time.Duration, wall time.Time) (n int, err error) {
	src, start, err := seeker(r, 2*c.conf.Size+int64(blockMost))
	if err != nil {
		return 0, fmt.Errorf("reading a cache dump: %w", err)
	}
	l := loader{c: c, r: src, now: now, wall: wall, read: c.readings.get()}
	defer c.readings.put(l.read)
	if _, err = l.pass(false); err != nil {
		return 0, fmt.Errorf("reading a cache dump: %w", err)
	}
	if _, err = src.Seek(start, io.SeekStart); err != nil {
		return 0, fmt.Errorf("reading a cache dump again: %w", err)
	}
	if n, err = l.pass(true); err != nil {
		return n, fmt.Errorf("reading a cache dump that changed meanwhile: %w", err)
	}
	return n, nil
}

// seeker is r, or what it has to give in memory, most octets at most.
func seeker(r io.Reader, most int64) (src io.ReadSeeker, start int64, err error) {
	if src, ok := r.(io.ReadSeeker); ok {
		if start, err = src.Seek(0, io.SeekCurrent); err == nil {
			return src, start, nil
		}
	}
	all, err := io.ReadAll(io.LimitReader(r, most))
	return bytes.NewReader(all), 0, err
}

// loader reads a dump.
type loader struct {
	c     *Cache
	r     io.Reader
	now   time.Duration
	wall  time.Time
	read  *reading
	block []byte

	passed time.Duration // between dump and load
	store  bool
	total  int // entries read
	kept   int
}

// pass reads the dump once, and stores what is in it where store is set.
func (l *loader) pass(store bool) (kept int, err error) {
	l.store, l.total, l.kept = store, 0, 0
	head, err := l.next(headSize)
	switch {
	case err != nil:
		return 0, err
	case string(head[:len(dumpMagic)]) != dumpMagic:
		return 0, ErrNoDump
	case head[len(dumpMagic)] != dumpVersion:
		return 0, fmt.Errorf("version %d: %w", head[len(dumpMagic)], ErrVersion)
	case !checked(head):
		return 0, fmt.Errorf("head: %w", ErrChecksum)
	}
	dumpedAt := time.Unix(0, int64(binary.LittleEndian.Uint64(head[len(dumpMagic)+1:])))
	l.passed = max(l.wall.Sub(dumpedAt), 0)
	for number := 1; ; number++ {
		end, err := l.nextBlock()
		if err != nil {
			return l.kept, fmt.Errorf("block %d: %w", number, err)
		}
		if end {
			return l.kept, l.atEnd()
		}
	}
}

// atEnd makes sure that nothing follows.
func (l *loader) atEnd() error {
	switch n, err := io.ReadFull(l.r, make([]byte, 1)); {
	case n > 0:
		return ErrBehind
	case err != io.EOF:
		return err
	}
	return nil
}

// next reads n octets more into the block.
func (l *loader) next(n int) ([]byte, error) {
	return l.more(l.block[:0], n)
}

func (l *loader) more(have []byte, n int) ([]byte, error) {
	size := len(have) + n
	if cap(have) < size {
		have = append(make([]byte, 0, size), have...)
	}
	l.block = have[:size]
	_, err := io.ReadFull(l.r, l.block[len(have):])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrShort
	}
	return l.block, err
}

// checked tells whether b ends with its checksum.
func checked(b []byte) bool {
	n := len(b) - 4
	return binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], checksums)
}

// nextBlock reads a block, or the end.
func (l *loader) nextBlock() (end bool, err error) {
	b, err := l.next(blockHead)
	if err != nil {
		return false, err
	}
	size, count := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if size > blockMost {
		return false, fmt.Errorf("%d octets: %w", size, ErrEntry)
	}
	if b, err = l.more(b, size+4); err != nil {
		return false, err
	}
	if !checked(b) {
		return false, ErrChecksum
	}
	if size == 0 {
		if count != l.total {
			return false, fmt.Errorf("%d read, %d said: %w", l.total, count, ErrCount)
		}
		return true, nil
	}
	rest := b[blockHead : blockHead+size]
	for i := range count {
		if rest, err = l.entry(rest); err != nil {
			return false, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	if len(rest) > 0 {
		return false, ErrCount
	}
	l.total += count
	return false, nil
}

// entry reads one entry from b and returns what is behind it.
func (l *loader) entry(b []byte) (rest []byte, err error) {
	var d dumped
	var k Key
	if !d.read(&b) || !d.scope(&b, &k) || len(b) < 2 {
		return nil, ErrEntry
	}
	size := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; size > len(b) {
		return nil, ErrEntry
	}
	msg, rest := b[:size:size], b[size:]
	end := wire.UncompressedEnd(msg, min(wire.HeaderSize, len(msg)))
	if end < 0 || end+4 > len(msg) {
		return nil, ErrEntry
	}
	k.Name = wire.Name(msg[wire.HeaderSize:end])
	k.Hash = wire.HashName(k.Name)
	k.Type, k.Class = binary.BigEndian.Uint16(msg[end:]), binary.BigEndian.Uint16(msg[end+2:])
	k.View, k.CD = d.view, d.flags&dumpCD != 0
	switch l.read.read(&k, msg, &l.c.limits) {
	case Malformed:
		return nil, ErrEntry
	case Kept:
		l.put(&d, &k)
	}
	return rest, nil
}

// put stores the entry that was read, where it is still of use.
func (l *loader) put(d *dumped, k *Key) {
	r := l.read
	age := time.Duration(d.age)
	if l.passed > math.MaxInt64-age {
		return
	}
	age += l.passed
	life := time.Duration(r.life) * time.Second
	if r.rcode == wire.ServFail || age-life >= l.c.conf.MaxStale || !l.store {
		return
	}
	r.ede = d.ede
	p := k.probe()
	if k.Scope.IsValid() {
		p = p.at(k.Scope)
	}
	n := newEntry{p: &p, r: r, stored: l.now - age, upstream: d.upstream, freq: int(d.freq), loaded: true}
	if l.c.insert(&n, l.now) != Kept {
		return
	}
	l.kept++
	if k.Scope.IsValid() {
		l.c.mark(k, l.now)
	}
}

// read reads the fixed part from the front of b.
func (d *dumped) read(b *[]byte) bool {
	p := *b
	if len(p) < dumpedSize {
		return false
	}
	*d = dumped{
		view:     binary.LittleEndian.Uint32(p),
		upstream: binary.LittleEndian.Uint16(p[4:]),
		ede:      binary.LittleEndian.Uint16(p[6:]),
		age:      int64(binary.LittleEndian.Uint64(p[8:])),
		flags:    p[16],
		freq:     p[17],
	}
	*b = p[dumpedSize:]
	return d.age >= 0 && d.flags <= dumpCD|dumpScoped && d.freq <= 3
}

// scope reads the scope from the front of b, where there is one.
func (d *dumped) scope(b *[]byte, k *Key) bool {
	if d.flags&dumpScoped == 0 {
		return true
	}
	p := *b
	if len(p) < scopeDumped {
		return false
	}
	*b = p[scopeDumped:]
	s := scope{addr: [16]byte(p), bits: p[16], v4: p[17] == 4}
	k.Scope = s.prefix()
	return (s.v4 || p[17] == 6) && s.bits > 0 && k.Scope.IsValid() && k.Scope == k.Scope.Masked()
}
