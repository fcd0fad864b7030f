package qlog

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// spread puts each field of the rows into memory of its own.
func (e *encoder) spread() {
	n := len(e.table.rows)
	for f := range e.fields {
		e.fields[f] = slices.Grow(e.fields[f][:0], n)[:n]
	}
	f := &e.fields
	for i := range e.table.rows {
		row := &e.table.rows[i]
		f[client][i], f[name][i], f[answers][i], f[kind][i] = row.client, row.name, row.answers, row.kind
		f[port][i], f[latency][i] = uint32(row.port), row.latency
		f[querySize][i], f[size][i] = uint32(row.querySize), uint32(row.size)
	}
	e.counts = append(e.counts[:0], make([]uint32, len(e.table.templates))...)
	for _, k := range f[kind] {
		e.counts[k]++
	}
	e.kindCounts = append(e.kindCounts[:0], e.counts...)
}

// maxFew is how many different numbers are worth a dictionary.
const maxFew = 1 << 12

// numbers writes the values: by a dictionary where there are few.
func (e *encoder) numbers() (err error) {
	if e.few() {
		e.encoded = e.encoded[:0]
		for _, n := range e.order {
			e.encoded = binary.LittleEndian.AppendUint32(e.encoded, e.known.all[n])
		}
		return e.indexes()
	}
	e.chunk.Codec = format.Uncompressed // nothing is left to be gained
	var enc delta.BinaryPackedEncoding
	for page := range slices.Chunk(e.values, pageRows) {
		e.numbers32 = e.numbers32[:0]
		for _, v := range page {
			e.numbers32 = append(e.numbers32, int32(v))
		}
		if e.encoded, err = enc.EncodeInt32(e.encoded[:0], e.numbers32); err != nil {
			return err
		}
		e.page(len(page), format.DeltaBinaryPacked, false)
	}
	return nil
}

// few puts numbers of different values in the place of values, where there are few.
func (e *encoder) few() bool {
	e.known.reset()
	e.spare = e.spare[:0]
	for _, v := range e.values {
		n, ok := e.known.number(v)
		if !ok {
			return false
		}
		e.spare = append(e.spare, n)
	}
	e.values, e.spare = e.spare, e.values
	e.count(len(e.known.all))
	return true
}

// numbering numbers different numbers in the order in which they come.
type numbering struct {
	all   []uint32
	small []uint32 // by number: where it is in all, plus one
	large map[uint32]uint32
}

const smallNumber = 1 << 16

// reset forgets all.
func (k *numbering) reset() {
	if k.small == nil {
		k.small = make([]uint32, smallNumber)
	}
	for _, v := range k.all {
		if v < smallNumber {
			k.small[v] = 0
		}
	}
	k.all, k.large = k.all[:0], map[uint32]uint32{}
}

// number is where v is in all; ok is false where there are too many already.
func (k *numbering) number(v uint32) (n uint32, ok bool) {
	if v < smallNumber {
		n = k.small[v]
	} else {
		n = k.large[v]
	}
	if n > 0 {
		return n - 1, true
	}
	if len(k.all) == maxFew {
		return 0, false
	}
	k.all = append(k.all, v)
	if v < smallNumber {
		k.small[v] = uint32(len(k.all))
	} else {
		k.large[v] = uint32(len(k.all))
	}
	return uint32(len(k.all) - 1), true
}

// texts writes texts by a dictionary; the values are their numbers.
func (e *encoder) texts(texts *packed) error {
	e.count(texts.len())
	return e.dictionary(texts)
}

func (e *encoder) dictionary(texts *packed) error {
	e.encoded = e.encoded[:0]
	for _, n := range e.order {
		text := texts.at(n)
		e.encoded = binary.LittleEndian.AppendUint32(e.encoded, uint32(len(text)))
		e.encoded = append(e.encoded, text...)
	}
	return e.indexes()
}

// ofKind writes a column of kinds.
func (e *encoder) ofKind(of func(*Row) *string) error {
	e.words.reset()
	e.wordOf, e.counts = e.wordOf[:0], e.counts[:0]
	known := map[string]uint32{}
	for i := range e.table.templates {
		text := *of(&e.table.templates[i])
		n, ok := known[text]
		if !ok {
			n = uint32(len(known))
			known[text] = n
			e.words.add([]byte(text))
			e.counts = append(e.counts, 0)
		}
		e.wordOf = append(e.wordOf, n)
		e.counts[n] += e.kindCounts[i]
	}
	e.values = e.values[:0]
	if len(known) > 1 { // else indexes does without
		for _, k := range e.fields[kind] {
			e.values = append(e.values, e.wordOf[k])
		}
	}
	e.rank()
	return e.dictionary(&e.words)
}

// count counts the values, which are below n, and ranks them.
func (e *encoder) count(n int) {
	e.counts = append(e.counts[:0], make([]uint32, n)...)
	for _, v := range e.values {
		e.counts[v]++
	}
	e.rank()
}

// rank orders values by how many rows have them, those that none has left out: the
// indexes of most rows are then small numbers, which compress well.
func (e *encoder) rank() {
	// By the length of the count in bits: close enough, and no sorting.
	var starts [33]uint32
	for _, c := range e.counts {
		starts[bits.Len32(c)]++
	}
	at := uint32(0)
	for l := 32; l > 0; l-- {
		starts[l], at = at, at+starts[l]
	}
	e.order = append(e.order[:0], make([]uint32, at)...)
	e.place = append(e.place[:0], make([]uint32, len(e.counts))...)
	for v, c := range e.counts {
		if l := bits.Len32(c); l > 0 {
			e.order[starts[l]], e.place[v] = uint32(v), starts[l]
			starts[l]++
		}
	}
}

// indexes writes the dictionary, which is in e.encoded, and the index of each value.
func (e *encoder) indexes() error {
	e.page(len(e.order), format.Plain, true)
	if len(e.order) == 1 {
		return e.same()
	}
	width := bits.Len32(uint32(len(e.order) - 1))
	if width > 4 {
		width = (width + 7) &^ 7 // whole octets compress better than a few bits less
	}
	enc := rle.Encoding{BitWidth: width}
	for page := range slices.Chunk(e.values, pageRows) {
		e.numbers32 = e.numbers32[:0]
		for _, v := range page {
			e.numbers32 = append(e.numbers32, int32(e.place[v]))
		}
		e.encoded = slices.Grow(e.encoded[:0], 5*pageRows)[:1]
		e.encoded[0] = byte(width)
		body, err := enc.EncodeInt32(e.encoded[1:], e.numbers32)
		if err != nil {
			return err
		}
		e.encoded = append(e.encoded, body...) // onto itself, as there was room
		e.page(len(page), format.RLEDictionary, false)
	}
	return nil
}

// same writes the pages of a column that has the first value of its dictionary in
// every row: one run each.
func (e *encoder) same() error {
	for page := range slices.Chunk(e.table.rows, pageRows) {
		e.encoded = append(e.encoded[:0], 1)
		e.encoded = append(binary.AppendUvarint(e.encoded, uint64(len(page))<<1), 0)
		e.page(len(page), format.RLEDictionary, false)
	}
	return nil
}
