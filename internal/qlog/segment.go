package qlog

import (
	"encoding/binary"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The format of segments. The version is in the key-value metadata of each.
const (
	VersionKey     = "waymark.version"
	SegmentVersion = "1"

	magic    = "PAR1"
	pageRows = 1 << 15
)

// encoder writes a table as one Parquet file with one row group. The dictionaries of
// columns are those that the table has kept while it grew: the library's own writer
// looks each value of each row up once more, which costs more than all the rest.
type encoder struct {
	table *table
	zstd  *zstd.Encoder
	out   io.Writer
	err   error
	at    int64 // octets written

	coded
	ranks
	kinded
}

// coded is the column at work, as it is written.
type coded struct {
	chunk           format.ColumnMetaData
	pages           []format.PageLocation
	numbers32       []int32
	numbers64       []int64
	encoded, packed []byte // packed is encoded, or zipped
	zipped          []byte
}

// ranks is the column at work, as numbers of different values.
type ranks struct {
	fields        [fieldCount][]uint32 // by row
	values, spare []uint32             // by row
	counts        []uint32             // by value, of rows
	place, order  []uint32             // of a value in the dictionary, and of the dictionary
	known         numbering
}

// kinded is the columns of kinds: the rows that each kind has, the
// different texts of one column, and which each kind has.
type kinded struct {
	kindCounts []uint32
	words      packed
	wordOf     []uint32
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	return &encoder{zstd: z}, err
}

// write writes t, whose rows are in order, and returns the octets of the file.
func (e *encoder) write(out io.Writer, t *table) (size int64, err error) {
	e.table, e.out, e.err, e.at = t, out, nil, 0
	e.spread()
	defer func() { e.table, e.out = nil, nil }()
	e.put([]byte(magic))
	group := format.RowGroup{NumRows: int64(len(t.rows)), FileOffset: e.at, SortingColumns: thrift.Slice[format.SortingColumn]{{ColumnIdx: 0}}}
	var locations [][]format.PageLocation
	for i := range columns {
		chunk, err := e.column(&columns[i])
		if err != nil {
			return 0, err
		}
		group.Columns = append(group.Columns, chunk)
		group.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		locations = append(locations, slices.Clone(e.pages))
	}
	for i := range locations {
		from := e.at
		e.marshal(&format.OffsetIndex{PageLocations: locations[i]})
		group.Columns[i].OffsetIndexOffset, group.Columns[i].OffsetIndexLength = from, int32(e.at-from)
	}
	e.footer(group)
	return e.at, e.err
}

// column writes the pages of one column.
func (e *encoder) column(c *column) (format.ColumnChunk, error) {
	e.chunk = format.ColumnMetaData{
		Type: c.kind, PathInSchema: thrift.Slice[string]{c.name}, Codec: format.Zstd, NumValues: int64(len(e.table.rows)),
	}
	e.pages = e.pages[:0]
	from := e.at
	if err := c.write(e); err != nil {
		return format.ColumnChunk{}, err
	}
	e.chunk.TotalCompressedSize = e.at - from
	return format.ColumnChunk{MetaData: e.chunk}, e.err
}

// footer writes what describes the file.
func (e *encoder) footer(group format.RowGroup) {
	schema := thrift.Slice[format.SchemaElement]{{Name: "waymark", NumChildren: thrift.New(int32(len(columns)))}}
	var orders thrift.Slice[format.ColumnOrder]
	for i := range columns {
		c := &columns[i]
		schema = append(schema, format.SchemaElement{
			Name: c.name, Type: thrift.New(c.kind), RepetitionType: thrift.New(format.Required), LogicalType: format.LogicalType{Value: c.logical},
		})
		orders = append(orders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	from := e.at
	e.marshal(&format.FileMetaData{
		Version: 1, Schema: schema, NumRows: group.NumRows, RowGroups: thrift.Slice[format.RowGroup]{group},
		KeyValueMetadata: thrift.Slice[format.KeyValue]{{Key: VersionKey, Value: SegmentVersion}, {Key: "waymark.rows", Value: strconv.FormatInt(group.NumRows, 10)}},
		CreatedBy:        "waymark", ColumnOrders: orders,
	})
	var end [8]byte
	binary.LittleEndian.PutUint32(end[:], uint32(e.at-from))
	copy(end[4:], magic)
	e.put(end[:])
}

func (e *encoder) put(b []byte) {
	if e.err != nil {
		return
	}
	n, err := e.out.Write(b)
	e.at, e.err = e.at+int64(n), err
}

func (e *encoder) marshal(v any) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.put(b)
}

// page writes e.encoded as a page of n values.
func (e *encoder) page(n int, encoding format.Encoding, dictionary bool) {
	e.packed = e.encoded
	if e.chunk.Codec == format.Zstd {
		e.packed = e.zstd.EncodeAll(e.encoded, e.zipped[:0])
		e.zipped = e.packed
	}
	h := format.PageHeader{UncompressedPageSize: int32(len(e.encoded)), CompressedPageSize: int32(len(e.packed))}
	if dictionary {
		h.Type = format.DictionaryPage
		h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(n), Encoding: encoding})
		e.chunk.DictionaryPageOffset = e.at
	} else {
		h.Type = format.DataPage
		h.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: int32(n), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
		if e.chunk.DataPageOffset == 0 {
			e.chunk.DataPageOffset = e.at
		}
	}
	from := e.at
	e.marshal(&h)
	e.chunk.TotalUncompressedSize += e.at - from + int64(len(e.encoded))
	e.put(e.packed)
	if !slices.Contains(e.chunk.Encoding, encoding) {
		e.chunk.Encoding = append(e.chunk.Encoding, encoding)
	}
	if !dictionary {
		rows := int64(0)
		if len(e.pages) > 0 {
			rows = e.pages[len(e.pages)-1].FirstRowIndex + pageRows
		}
		e.pages = append(e.pages, format.PageLocation{Offset: from, CompressedPageSize: int32(e.at - from), FirstRowIndex: rows})
	}
}

// times writes when rows came, and from when to when they are.
func (e *encoder) times() (err error) {
	e.chunk.Codec = format.Uncompressed // nothing is left to be gained
	var enc delta.BinaryPackedEncoding
	rows := e.table.rows
	if len(rows) > 0 {
		le := binary.LittleEndian
		e.chunk.Statistics.MinValue = le.AppendUint64(nil, uint64(rows[0].time))
		e.chunk.Statistics.MaxValue = le.AppendUint64(nil, uint64(rows[len(rows)-1].time))
	}
	for page := range slices.Chunk(rows, pageRows) {
		e.numbers64 = e.numbers64[:0]
		for i := range page {
			e.numbers64 = append(e.numbers64, page[i].time)
		}
		if e.encoded, err = enc.EncodeInt64(e.encoded[:0], e.numbers64); err != nil {
			return err
		}
		e.page(len(page), format.DeltaBinaryPacked, false)
	}
	return nil
}
