package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/qlog/search"
)

// rowsAligned is how many rows wait for each other to stand in line.
const rowsAligned = 1000

// rowPrinter prints rows as a table, or as JSON.
type rowPrinter struct {
	out     io.Writer
	json    search.Writer // nil: a table
	buf     bytes.Buffer  // of json
	colour  bool
	lines   [][]string
	rows    []qlog.Row // of lines, for their colours
	widths  []int
	waiting int
	total   int
}

// rowTitles is the head of the table.
var rowTitles = []string{"TIME", "CLIENT", "NAME", "TYPE", "RCODE", "SOURCE", "BY", "LATENCY"}

// usual are widths that most rows fit in, for rows that come one by one.
var usual = []int{23, 15, 32, 5, 8, 7, 20, 8}

func newRowPrinter(out io.Writer, asJSON bool) (*rowPrinter, error) {
	p := &rowPrinter{out: out, colour: isTerminal(out)}
	if !asJSON {
		p.widths = make([]int, len(rowTitles))
		return p, nil
	}
	var err error
	p.json, err = search.NewWriter(&p.buf, "json")
	return p, err
}

// isTerminal tells whether somebody looks at it who may like colours
// (https://no-color.org).
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// add takes a row; true asks for more. It is printed by flush.
func (p *rowPrinter) add(r *qlog.Row) bool {
	p.waiting++
	p.total++
	if p.json != nil {
		return p.json.Write(r) == nil // a buffer in memory takes all
	}
	by := r.Rule
	if r.Upstream != "" {
		by = r.Upstream
	}
	p.lines = append(p.lines, []string{
		time.UnixMicro(r.Time).Format("2006-01-02 15:04:05.000"), r.Client, r.Name, r.Type, r.Rcode, r.Source, orDash(by), latency(r.Latency),
	})
	p.rows = append(p.rows, *r)
	return true
}

// count is how many rows wait to be printed.
func (p *rowPrinter) count() int { return p.waiting }

// latency is microseconds as milliseconds, with the digits that matter.
func latency(us uint32) string {
	ms := float64(us) / 1000
	switch {
	case us < 10_000:
		return strconv.FormatFloat(ms, 'f', 3, 64) + " ms"
	case us < 100_000:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
}

// flush prints what waits. The head is printed once, before the first row.
func (p *rowPrinter) flush() error {
	if p.json != nil {
		_ = p.json.Close() // a buffer in memory takes all
	} else if p.waiting > 0 {
		p.align()
	}
	p.waiting = 0
	_, err := p.buf.WriteTo(p.out)
	return err
}

// widestName lets one long name push its own line out and no other.
const widestName = 48

func (p *rowPrinter) align() {
	lines := p.lines
	head := p.total == p.waiting
	if head {
		lines = append([][]string{rowTitles}, lines...)
	}
	for _, line := range lines {
		for i, text := range line {
			if len(text) <= widestName {
				p.widths[i] = max(p.widths[i], len(text))
			}
		}
	}
	if head {
		p.line(rowTitles, "")
	}
	for i, line := range p.lines {
		p.line(line, colourOf(&p.rows[i]))
	}
	p.lines, p.rows = p.lines[:0], p.rows[:0]
}

// line prints one line; the last column stands to the right.
func (p *rowPrinter) line(texts []string, colour string) {
	if p.colour {
		p.buf.WriteString(colour)
	}
	last := len(texts) - 1
	for i, text := range texts[:last] {
		fmt.Fprintf(&p.buf, "%-*s  ", p.widths[i], text)
	}
	fmt.Fprintf(&p.buf, "%*s", p.widths[last], texts[last])
	if p.colour && colour != "" {
		p.buf.WriteString("\x1b[0m")
	}
	p.buf.WriteByte('\n')
}

// colourOf is red for what failed, yellow for what was blocked, dim for names that
// do not exist.
func colourOf(r *qlog.Row) string {
	switch {
	case r.Rcode == "SERVFAIL":
		return "\x1b[31m"
	case r.EDE == "15" || r.EDE == "16" || r.EDE == "17" || r.EDE == "18":
		return "\x1b[33m"
	case r.Rcode == "NXDOMAIN":
		return "\x1b[2m"
	}
	return ""
}

// printTop prints counts with their shares.
func printTop(out io.Writer, column string, t search.Table) error {
	var b strings.Builder
	wide, title := len(column), strings.ToUpper(column)
	for _, v := range t.Values {
		if len(v.Value) <= widestName {
			wide = max(wide, len(v.Value))
		}
	}
	others := "(" + counted(t.Distinct-len(t.Values), "other") + ")"
	wide = max(wide, len(others))
	digits := max(len("QUERIES"), len(strconv.FormatUint(t.Rows, 10)))
	fmt.Fprintf(&b, "%-*s  %*s   SHARE\n", wide, title, digits, "QUERIES")
	var shown uint64
	for _, v := range t.Values {
		shown += v.Count
		fmt.Fprintf(&b, "%-*s  %*d  %5.1f%%\n", wide, orDash(v.Value), digits, v.Count, 100*v.Share)
	}
	if rest := t.Rows - shown; rest > 0 {
		fmt.Fprintf(&b, "%-*s  %*d  %5.1f%%\n", wide, others, digits, rest, 100*float64(rest)/float64(t.Rows))
	}
	fmt.Fprintf(&b, "%-*s  %*d  100.0%%\n", wide, "(all)", digits, t.Rows)
	_, err := io.WriteString(out, b.String())
	return err
}

// printTopJSON prints counts as one object.
func printTopJSON(out io.Writer, t search.Table) error {
	if t.Values == nil {
		t.Values = []search.Value{}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Rows     uint64         `json:"rows"`
		Distinct int            `json:"distinct"`
		Values   []search.Value `json:"values"`
	}{t.Rows, t.Distinct, t.Values})
}
