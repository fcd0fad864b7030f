package search

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// readBuffer is how many octets are read ahead of page headers; pages that are
// larger are read at once.
const readBuffer = 16 << 10

// maxRows is far beyond what is written to a segment. It bounds what a damaged
// footer can make us allocate.
const maxRows = 1 << 22

// segment is an open Parquet file.
type segment struct {
	file *os.File
	p    *parquet.File
	ours bool // package qlog wrote it: texts are always by dictionary
}

// openSegment reads the footer and nothing else.
func openSegment(path string, schema *parquet.Schema) (*segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f}
	info, err := f.Stat()
	if err == nil {
		s.p, err = parquet.OpenFile(f, info.Size(), parquet.FileSchema(schema), parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true),
			parquet.SkipBloomFilters(true), parquet.OptimisticRead(true), parquet.ReadBufferSize(readBuffer), parquet.FileReadMode(parquet.ReadModeSync))
	}
	if err == nil {
		_, s.ours = s.p.Lookup(qlog.VersionKey)
	}
	if err == nil && s.p.NumRows() > maxRows {
		err = fmt.Errorf("reading the footer: %d rows are more than a segment can have", s.p.NumRows())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *segment) close() { s.file.Close() }

// span is the times of the first and the last row, as the footer has them. Where
// it does not, they are as far apart as can be.
func (s *segment) span() (first, last int64) {
	c := s.p.Root().Column("time")
	first, last = math.MaxInt64, math.MinInt64
	for _, g := range s.p.Metadata().RowGroups {
		if c == nil || !c.Leaf() || c.Index() >= len(g.Columns) {
			return math.MinInt64, math.MaxInt64
		}
		low, high := g.Columns[c.Index()].MetaData.Statistics.MinValue, g.Columns[c.Index()].MetaData.Statistics.MaxValue
		if len(low) != 8 || len(high) != 8 {
			return math.MinInt64, math.MaxInt64
		}
		first = min(first, int64(binary.LittleEndian.Uint64(low)))
		last = max(last, int64(binary.LittleEndian.Uint64(high)))
	}
	return first, last
}

// group is a row group of a segment.
type group struct {
	seg  *segment
	at   int
	rows int
}

func (s *segment) groups() []group {
	all := make([]group, 0, len(s.p.RowGroups()))
	for i, g := range s.p.RowGroups() {
		all = append(all, group{s, i, int(g.NumRows())})
	}
	return all
}

// reader reads a column of a row group. A column that the file does not have, as
// files of older programs lack the newer ones, reads as empty texts and zeros.
type reader struct {
	pages *parquet.FilePages // nil: the file has no such column
	kind  parquet.Kind
	rows  int
	dict  texts
	whole bool // every page is of numbers of dict

	first, next int // rows of the page that was read last, and of the page behind
	ids         []uint32
	times       []int64 // instead of ids where kind is Int64
}

// open begins to read a column; the caller closes the reader. kind is what the
// column has to be.
func (g group) open(name string, kind parquet.Kind) (*reader, error) {
	r := &reader{kind: kind, rows: g.rows, whole: true}
	c := g.seg.p.Root().Column(name)
	if c == nil {
		r.dict.add("")
		return r, nil
	}
	chunks := g.seg.p.RowGroups()[g.at].ColumnChunks()
	if !c.Leaf() || c.Optional() || c.Repeated() || c.Type().Kind() != kind || c.Index() >= len(chunks) {
		return nil, fmt.Errorf("reading column %s: it is not one of the query log", name)
	}
	chunk := chunks[c.Index()].(*parquet.FileColumnChunk)
	r.pages = chunk.PagesFrom(g.seg.file)
	_, _ = chunk.OffsetIndex() // without it seeking goes through the pages
	if kind == parquet.ByteArray {
		if err := r.readDictionary(); err != nil {
			r.close()
			return nil, fmt.Errorf("reading column %s: %w", name, err)
		}
		r.whole = g.seg.ours || onlyDictionary(g.seg.p.Metadata().RowGroups[g.at].Columns[c.Index()].MetaData.EncodingStats)
	}
	return r, nil
}

// onlyDictionary tells whether statistics say that all data pages refer to the
// dictionary.
func onlyDictionary(stats []format.PageEncodingStats) bool {
	data := false
	for _, s := range stats {
		if s.PageType == format.DictionaryPage {
			continue
		}
		if s.Encoding != format.RLEDictionary {
			return false
		}
		data = true
	}
	return data
}

func (r *reader) readDictionary() error {
	d, err := r.pages.ReadDictionary()
	if err != nil || d == nil {
		return err
	}
	values := d.Page().Data()
	octets, offsets := values.ByteArray()
	r.dict.more = octets
	if len(offsets) > 1 {
		r.dict.ends = offsets[1:len(offsets):len(offsets)] // the dictionary is ours from here on
	}
	return nil
}

func (r *reader) close() {
	if r.pages != nil {
		r.pages.Close()
	}
}

// from gives the numbers of the values from a row to the end of its page: places in
// dict of a text, the values themselves of a number. They are valid until the next
// call.
func (r *reader) from(row int) ([]uint32, error) {
	if err := r.seek(row); err != nil {
		return nil, err
	}
	return r.ids[row-r.first:], nil
}

// timesFrom is from for the column of times.
func (r *reader) timesFrom(row int) ([]int64, error) {
	if err := r.seek(row); err != nil {
		return nil, err
	}
	return r.times[row-r.first:], nil
}

// seek reads the page that has the row, unless it was read last.
func (r *reader) seek(row int) error {
	if r.first <= row && row < r.next {
		return nil
	}
	if r.pages == nil {
		r.first, r.next = 0, r.rows
		r.ids, r.times = make([]uint32, r.rows), make([]int64, r.rows)
		return nil
	}
	if row != r.next {
		if err := r.pages.SeekToRow(int64(row)); err != nil {
			return fmt.Errorf("seeking row %d: %w", row, err)
		}
	}
	page, err := r.pages.ReadPage()
	if err != nil {
		return fmt.Errorf("reading the page of row %d: %w", row, err)
	}
	defer parquet.Release(page)
	if page.NumValues() == 0 {
		return fmt.Errorf("reading the page of row %d: it is empty", row)
	}
	r.first, r.next = row, row+int(page.NumValues())
	return r.fill(page)
}

// fill takes over the values of a page.
func (r *reader) fill(page parquet.Page) error {
	values := page.Data()
	dict := page.Dictionary()
	switch {
	case r.kind == parquet.Int64:
		r.times = r.times[:0]
		if dict == nil {
			r.times = append(r.times, values.Int64()...)
			return nil
		}
		of := dict.Page().Data()
		return lookUp(&r.times, values.Int32(), of.Int64())
	case r.kind == parquet.Int32 && dict == nil:
		r.ids = append(r.ids[:0], values.Uint32()...)
	case r.kind == parquet.Int32:
		r.ids = r.ids[:0]
		of := dict.Page().Data()
		return lookUp(&r.ids, values.Int32(), of.Uint32())
	case dict == nil:
		r.ids = r.ids[:0]
		octets, offsets := values.ByteArray()
		for i := range len(offsets) - 1 {
			r.ids = append(r.ids, uint32(len(r.dict.ends)))
			r.dict.add(string(octets[offsets[i]:offsets[i+1]]))
		}
	default:
		r.ids = r.ids[:0]
		n := uint32(len(r.dict.ends))
		for _, id := range values.Int32() {
			if uint32(id) >= n {
				return fmt.Errorf("finding value %d: the dictionary has %d", id, n)
			}
			r.ids = append(r.ids, uint32(id))
		}
	}
	return nil
}

// lookUp appends the values that ids stand for.
func lookUp[T any](into *[]T, ids []int32, values []T) error {
	for _, id := range ids {
		if int(id) < 0 || int(id) >= len(values) {
			return fmt.Errorf("finding value %d: the dictionary has %d", id, len(values))
		}
		*into = append(*into, values[id])
	}
	return nil
}
