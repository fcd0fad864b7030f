package search

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// Writer writes rows in one of the formats of exports. Close writes what is left;
// it does not close what is written to. Neither may be called by two at once.
type Writer interface {
	Write(r *qlog.Row) error
	Close() error
}

// Formats are the names that NewWriter takes.
func Formats() []string { return []string{"json", "csv", "parquet"} }

// NewWriter makes a writer: "json" is one object a line with the keys of qlog.Row;
// "csv" has a first line of names, and times as RFC 3339 has them, in UTC;
// "parquet" is one file in the format of segments. Any other name is a
// *FilterError.
func NewWriter(w io.Writer, format string) (Writer, error) {
	switch format {
	case "json":
		b := bufio.NewWriterSize(w, 64<<10)
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		return &jsonWriter{b, enc}, nil
	case "csv":
		c := &csvWriter{w: csv.NewWriter(w), line: make([]string, 1, numColumns+1)}
		c.line[0] = "time"
		for i := range columns {
			c.line = append(c.line, columns[i].name)
		}
		return c, c.w.Write(c.line)
	case "parquet":
		return &parquetWriter{w: newParquet(w)}, nil
	}
	return nil, &FilterError{Key: "format", Value: format, Problem: "unknown", Near: nearest(format, Formats())}
}

// Export writes the rows that a filter means to w, and tells how many there were.
// Errors of w end it; others are as with Search.
func Export(ctx context.Context, dir string, f Filter, format string, w io.Writer) (int, Report, error) {
	out, err := NewWriter(w, format)
	if err != nil {
		return 0, Report{}, err
	}
	n := 0
	var failed error
	report, err := Search(ctx, dir, f, func(r *qlog.Row) bool {
		if failed = out.Write(r); failed != nil {
			return false
		}
		n++
		return true
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return n, report, fmt.Errorf("exporting rows: %w", err)
	}
	return n, report, nil
}

type jsonWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
}

func (j *jsonWriter) Write(r *qlog.Row) error { return j.enc.Encode(r) }

func (j *jsonWriter) Close() error { return j.w.Flush() }

type csvWriter struct {
	w    *csv.Writer
	line []string
}

// csvTime has as many octets in every row.
const csvTime = "2006-01-02T15:04:05.000000Z"

func (c *csvWriter) Write(r *qlog.Row) error {
	c.line = append(c.line[:0], time.UnixMicro(r.Time).UTC().Format(csvTime))
	for i := range columns {
		if get := columns[i].text; get != nil {
			c.line = append(c.line, *get(r))
		} else {
			c.line = append(c.line, decimal(columns[i].number(r)))
		}
	}
	return c.w.Write(c.line)
}

func (c *csvWriter) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// groupRows is the rows of a row group, as segments have them.
const groupRows = 256 << 10

// parquetWriter hands rows on in batches.
type parquetWriter struct {
	w     *parquet.GenericWriter[qlog.Row]
	batch []qlog.Row
	rows  int
}

func newParquet(w io.Writer) *parquet.GenericWriter[qlog.Row] {
	return parquet.NewGenericWriter[qlog.Row](w, parquet.StructTag(`parquet:"time,timestamp(microsecond)"`, "time"), parquet.Compression(&parquet.Zstd),
		parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.RLEDictionary),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked),
		parquet.DataPageStatistics(false), parquet.SkipPageBounds("name"), parquet.SkipPageBounds("answers"))
}

func (p *parquetWriter) Write(r *qlog.Row) error {
	p.batch = append(p.batch, *r)
	if len(p.batch) < 1024 {
		return nil
	}
	return p.flush()
}

func (p *parquetWriter) flush() error {
	_, err := p.w.Write(p.batch)
	p.rows += len(p.batch)
	p.batch = p.batch[:0]
	if err == nil && p.rows >= groupRows {
		p.rows = 0
		err = p.w.Flush()
	}
	return err
}

func (p *parquetWriter) Close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.w.Close()
}
