// Package zonefile reads zones in presentation format (master files, RFC 1035
// §5) and judges them. Read turns a file and what it includes into records in
// wire format; Check adds what a zone must hold as a whole. It keeps no zone
// and answers no query: package zone builds its snapshots from what Read hands
// out, and the subcommand that checks zones prints what Check finds.
//
// A file is cut into chunks at record boundaries, chunks are parsed in
// parallel, and their records are handed out in file order. RDATA of the
// common types is written straight into wire format; for all else the RDATA of
// that one record goes through miekg/dns.
package zonefile

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Record is one resource record in wire format. Letters keep their case,
// names in RDATA are uncompressed and absolute. Owner and RDATA are valid
// until the callback they were handed to returns.
type Record struct {
	Owner       wire.Name
	Type, Class uint16
	TTL         uint32 // seconds
	RDATA       []byte
	File        string // as it was opened
	Line        int    // first line of the record, from 1
}

// Options say how a zone is read.
type Options struct {
	Origin  wire.Name // apex of the zone and first origin of the file; without one, the root is the origin and every owner is in the zone
	Root    string    // folder that $INCLUDE does not leave; empty is the folder of the file
	Limits  Limits
	Workers int   // chunks parsed at the same time; 0 is GOMAXPROCS
	Now     int64 // seconds since 1970 that signatures are judged at; 0 leaves their times unjudged
	Classes bool  // records may be of any class, not of IN alone
	Opaque  bool  // RDATA in the form for unknown types (RFC 3597 §5) needs the layout that package wire knows of its type and no more
	chunk   int   // bytes of a chunk of a large file, chunkSize if 0
}

// Limits bound what one zone may cost to read. A zero takes the default.
type Limits struct {
	Depth    int   // files included from within each other, 8
	Bytes    int64 // text of all files together, 8 GiB
	Generate int   // records that all $GENERATE directives make together, 1,000,000
	Record   int   // bytes of text of one record, 1 MiB: 65,535 octets of RDATA as \DDD fit four times
	Problems int   // errors that are collected before reading stops, and warnings that are kept, 100
}

// Level tells whether a problem makes a zone unusable.
type Level uint8

// Levels of problems.
const (
	Warning Level = iota
	Error
)

// String is the word that stands in front of a printed problem.
func (l Level) String() string {
	if l == Error {
		return "error"
	}
	return "warning"
}

// MarshalText makes a Level readable in JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Problem is one thing that is wrong in a zone. Line and Column count from 1
// (columns in bytes); a zero means that there is no such place to point at.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`           // what is wrong
	Mend   string `json:"mend,omitempty"` // what to do about it, may be empty
	Level  Level  `json:"level"`
}

// String is file:line:column: level: text (mend), without the parts that are
// unknown.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	fmt.Fprintf(&b, ": %s: %s", p.Level, p.Text)
	if p.Mend != "" {
		fmt.Fprintf(&b, " (%s)", p.Mend)
	}
	return b.String()
}

// ProblemsError is the error of Read for a file that could be opened but holds
// records that cannot be read. It holds at least one problem of level Error.
type ProblemsError struct{ Problems []Problem }

// Error tells the first errors and the number of the others.
func (e *ProblemsError) Error() string {
	const shown = 3
	var lines []string
	count := 0
	for _, p := range e.Problems {
		if p.Level != Error {
			continue
		}
		if count++; count <= shown {
			lines = append(lines, p.String())
		}
	}
	text := strings.Join(lines, "; ")
	if count > shown {
		text += fmt.Sprintf("; and %d more errors", count-shown)
	}
	return text
}

// errTooMany ends a reading that found Limits.Problems errors.
var errTooMany = errors.New("too many errors")

// Findings collects problems, of each level up to a limit: many warnings never
// hide an error. It belongs to one goroutine.
type Findings struct {
	list  []Problem
	limit int
	count [2]int // by level, those beyond the limit too
}

// Add takes a problem, or counts it where there are too many already.
func (f *Findings) Add(p Problem) {
	if f.count[p.Level]++; f.count[p.Level] <= f.limit {
		f.list = append(f.list, p)
	}
}

// All is the problems that were kept, in the order they were found.
func (f *Findings) All() []Problem { return f.list }

// More tells whether there are problems that were not kept.
func (f *Findings) More() bool { return f.Full() || f.count[Error]+f.count[Warning] > len(f.list) }

// Full tells whether no further error is kept.
func (f *Findings) Full() bool { return f.count[Error] >= f.limit }

// Read reads the master file at path with all files it includes and hands its
// records to each in batches. Records come in file order, an included file in
// the place of its directive; batches reuse their memory. Duplicates are
// handed out as they stand. Bad records are left out, reading goes on behind
// them, and all are told at the end in a *ProblemsError, so a caller that gets
// an error discards what it was handed. An error of each ends the reading and
// is returned as it is. Warnings alone are no error; Check tells them.
func Read(path string, o Options, each func([]Record) error) error {
	found, err := Scan(path, o, each)
	if err == nil && found.count[Error] > 0 {
		err = &ProblemsError{Problems: found.list}
	}
	return err
}

// withDefaults fills in what was left zero.
func (o Options) withDefaults() Options {
	l := &o.Limits
	l.Depth = cmpOr(l.Depth, 8)
	l.Bytes = cmpOr(l.Bytes, 8<<30)
	l.Generate = cmpOr(l.Generate, 1_000_000)
	l.Record = cmpOr(l.Record, 1<<20)
	l.Problems = cmpOr(l.Problems, 100)
	o.chunk = cmpOr(o.chunk, chunkSize)
	o.Workers = cmpOr(o.Workers, runtime.GOMAXPROCS(0))
	return o
}

func cmpOr[T int | int64](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}
