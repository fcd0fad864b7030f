package qlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A tail is a table that grows: a head, and blocks of what came since the block
// before. All numbers are little-endian.
//
//	head   "WMQLTAIL", version (4), reserved (4)
//	block  octets of the body (4), CRC-32C of the body (4), body
//	body   five lists of new values: names, clients, answers, then kinds; then rows
//	list   how many (4), each value as length (2) and octets
//	kind   as many values as there are kindColumns
//	rows   how many (4), each of entrySize octets
const (
	tailMagic   = "WMQLTAIL"
	tailVersion = 1
	tailHead    = 16
	blockHead   = 8
	entrySize   = 8 + 5*4 + 3*2

	// maxBlock is more than a block of ours can have: what says it has more is damaged.
	maxBlock = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mark is how much of a table has been written.
type mark struct {
	texts       [3]int
	kinds, rows int
}

// mark is all of t.
func (t *table) mark() (m mark) {
	for i, d := range t.dicts() {
		m.texts[i] = d.texts.len()
	}
	m.kinds, m.rows = len(t.templates), len(t.rows)
	return m
}

// tailHeader is what a tail begins with.
func tailHeader() []byte {
	b := append(make([]byte, 0, tailHead), tailMagic...)
	b = binary.LittleEndian.AppendUint32(b, tailVersion)
	return append(b, 0, 0, 0, 0)
}

// appendBlock appends the block of what t has behind m.
func (t *table) appendBlock(dst []byte, m mark) []byte {
	le := binary.LittleEndian
	begin := len(dst)
	dst = append(dst, make([]byte, blockHead)...)
	for i, d := range t.dicts() {
		dst = le.AppendUint32(dst, uint32(d.texts.len()-m.texts[i]))
		for n := m.texts[i]; n < d.texts.len(); n++ {
			dst = appendText(dst, d.texts.at(uint32(n)))
		}
	}
	dst = le.AppendUint32(dst, uint32(len(t.templates)-m.kinds))
	for i := m.kinds; i < len(t.templates); i++ {
		for _, c := range kindColumns {
			dst = appendText(dst, []byte(*c.of(&t.templates[i])))
		}
	}
	dst = le.AppendUint32(dst, uint32(len(t.rows)-m.rows))
	for i := range t.rows[m.rows:] {
		e := &t.rows[m.rows+i]
		dst = le.AppendUint64(dst, uint64(e.time))
		dst = le.AppendUint64(dst, uint64(e.name)|uint64(e.client)<<32)
		dst = le.AppendUint64(dst, uint64(e.answers)|uint64(e.kind)<<32)
		dst = le.AppendUint64(dst, uint64(e.latency)|uint64(e.port)<<32|uint64(e.querySize)<<48)
		dst = le.AppendUint16(dst, e.size)
	}
	body := dst[begin+blockHead:]
	le.PutUint32(dst[begin:], uint32(len(body)))
	le.PutUint32(dst[begin+4:], crc32.Checksum(body, castagnoli))
	return dst
}

func appendText(dst, text []byte) []byte {
	text = text[:min(len(text), 1<<16-1)]
	return append(binary.LittleEndian.AppendUint16(dst, uint16(len(text))), text...)
}

// The errors of a tail.
var (
	errNoTail  = errors.New("not a tail of the query log")
	errVersion = errors.New("a tail of another version of the program")
	errDamaged = errors.New("a damaged block")
)

// readTail fills t from a tail. It stops without an error at a last block that is not
// whole, as a program leaves it that was killed; whole says how many octets are good.
// After an error t has the rows in front of the damage.
func readTail(r io.Reader, t *table) (whole int64, err error) {
	head := make([]byte, tailHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, ended(err) // perhaps killed before the first block
	}
	if err := checkHead(head); err != nil {
		return 0, err
	}
	whole = tailHead
	var body []byte
	for {
		if _, err := io.ReadFull(r, head[:blockHead]); err != nil {
			return whole, ended(err)
		}
		size := binary.LittleEndian.Uint32(head)
		if size > maxBlock {
			return whole, errDamaged
		}
		if body, err = readBody(r, body[:0], int(size)); err != nil {
			return whole, ended(err)
		}
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) || !t.readBlock(body) {
			return whole, errDamaged
		}
		whole += blockHead + int64(size)
	}
}

func checkHead(head []byte) error {
	if string(head[:8]) != tailMagic {
		return errNoTail
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != tailVersion {
		return fmt.Errorf("%w: version %d", errVersion, v)
	}
	return nil
}

// readBody reads size octets and takes memory for no more than there are.
func readBody(r io.Reader, b []byte, size int) ([]byte, error) {
	const step = 1 << 20
	for len(b) < size {
		n := min(size-len(b), step)
		at := len(b)
		b = append(b, make([]byte, n)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// ended is nil where a file just ended.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// readBlock adds a block to t. It is false, and t as before, where the block makes no
// sense.
func (t *table) readBlock(body []byte) bool {
	before := t.mark()
	r := blockReader{rest: body}
	for _, d := range t.dicts() {
		for range r.count(2) {
			d.texts.add(r.text())
		}
	}
	for range r.count(2 * len(kindColumns)) {
		var row Row
		for _, c := range kindColumns {
			*c.of(&row) = string(r.text())
		}
		t.templates = append(t.templates, row)
	}
	now := t.mark()
	for range r.count(entrySize) {
		b := r.take(entrySize)
		le := binary.LittleEndian
		e := entry{
			time: int64(le.Uint64(b)), name: le.Uint32(b[8:]), client: le.Uint32(b[12:]), answers: le.Uint32(b[16:]), kind: le.Uint32(b[20:]),
			latency: le.Uint32(b[24:]), port: le.Uint16(b[28:]), querySize: le.Uint16(b[30:]), size: le.Uint16(b[32:]),
		}
		r.bad = r.bad || int(e.name) >= now.texts[name] || int(e.client) >= now.texts[client] || int(e.answers) >= now.texts[answers] || int(e.kind) >= now.kinds
		t.rows = append(t.rows, e)
	}
	if r.bad || len(r.rest) > 0 {
		t.cut(before)
		return false
	}
	return true
}

// cut takes away what is behind m.
func (t *table) cut(m mark) {
	for i, d := range t.dicts() {
		d.texts.cut(m.texts[i])
	}
	t.templates, t.rows = t.templates[:m.kinds], t.rows[:m.rows]
}

// blockReader reads a body. After something that cannot be it is bad, and gives
// nothing more.
type blockReader struct {
	rest []byte
	bad  bool
}

// nothing is what a bad reader gives.
var nothing [entrySize]byte

// take is the next n octets, which are not changed; a text that is not there is short.
func (r *blockReader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nothing[:min(n, len(nothing))]
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// count is how many values of at least size octets follow.
func (r *blockReader) count(size int) int {
	n := int(binary.LittleEndian.Uint32(r.take(4)))
	if n > len(r.rest)/size {
		r.bad = true
		return 0
	}
	return n
}

func (r *blockReader) text() []byte { return r.take(int(binary.LittleEndian.Uint16(r.take(2)))) }

// ReadTail hands each row of a tail to each, in the order in which they came, until
// that is false. A last block that is not whole is no error: it is being written, or
// the program was killed. The row is valid during the call.
func ReadTail(path string, each func(*Row) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	t := newTable()
	_, err = readTail(f, t)
	for i := range t.rows {
		row := t.row(i)
		if !each(&row) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
