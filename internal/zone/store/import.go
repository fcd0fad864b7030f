package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// Source hands out the records of a whole zone in batches, which are valid until
// each returns; an error of each ends it. zonefile.Read, Text and a transfer
// (xfr.Primary.Fetch) are of this kind. What it handed out before an error is
// thrown away.
type Source func(ctx context.Context, each func([]zonefile.Record) error) error

// Mode says what an import may find.
type Mode uint8

// Modes of an import.
const (
	Put     Mode = iota // whether the zone is there or not
	Create              // the zone must not be there: ErrExists
	Replace             // the zone must be there: ErrNoZone
)

// Author is who changes a zone, and why, for its history.
type Author struct {
	Who  string // such as the name of an API token
	Note string // of the author, may be empty
}

// Import is a whole zone to put into the store.
type Import struct {
	Zone   wire.Name
	Source Source
	Mode   Mode
	Match  *uint32 // serial that the zone has to have, else ErrMatch; nil is any
	Exact  bool    // the serial is kept as it comes, and has to be newer, else ErrSerial; otherwise it grows where it is not newer
	Expect int     // about how many records will come, 0 where that is not known
	By     Author
	Report func(records int) // told now and then how many were read; nil is nobody
}

// Result is what became of a change.
type Result struct {
	Zone      *zone.Zone // the new version, to be swapped in; nil where nothing changed
	Version   Version    // the newest
	Unchanged bool       // the zone was what it should become already: nothing was written
}

// importer is one import under way. It belongs to the goroutine of Import.
type importer struct {
	s     *Store
	in    *Import
	apex  wire.Name
	have  head
	there bool // the zone is in the store

	gather  gatherer
	builder *zone.Builder
	soa     []zonefile.Record // at the apex
	faults  []zonefile.Problem
}

// Import reads a whole zone from its source aside, validates it, and puts it into
// the store in place of what is there. On any error nothing has changed. What is
// wrong with records is a *zonefile.ProblemsError with all lines, up to 100.
func (s *Store) Import(ctx context.Context, in Import) (Result, error) {
	result, err := s.importZone(ctx, &in)
	if err != nil {
		return Result{}, fmt.Errorf("importing zone %s: %w", in.Zone, err)
	}
	return result, nil
}

func (s *Store) importZone(ctx context.Context, in *Import) (Result, error) {
	leave, err := s.take(ctx, in.Zone)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	m := &importer{s: s, in: in, apex: in.Zone.Fold()}
	if err := m.begin(); err != nil {
		return Result{}, err
	}
	m.gather.apex = m.apex
	m.builder = zone.NewBuilder(m.apex, max(m.have.Records, in.Expect))
	if err := m.read(ctx); err != nil {
		return Result{}, err
	}
	explicit, err := m.placeSOA()
	if err != nil {
		return Result{}, err
	}
	z, err := m.finish()
	if err != nil {
		return Result{}, err
	}
	return m.commit(z, explicit)
}

// begin looks at what is in the store.
func (m *importer) begin() error {
	err := m.s.view(m.apex, func(b *bbolt.Bucket) error {
		var err error
		m.have, err = readHead(b)
		m.there = err == nil
		return err
	})
	switch {
	case errors.Is(err, ErrNoZone) && (m.in.Mode == Replace || m.in.Match != nil):
		return ErrNoZone
	case errors.Is(err, ErrNoZone):
		return nil
	case err != nil:
		return err
	case m.in.Mode == Create:
		return ErrExists
	}
	return match(m.in.Match, m.have.Serial)
}

func match(want *uint32, have uint32) error {
	if want != nil && *want != have {
		return fmt.Errorf("expecting serial %d, finding %d: %w", *want, have, ErrMatch)
	}
	return nil
}

// read gathers all records of the source.
func (m *importer) read(ctx context.Context) error {
	err := m.in.Source(ctx, func(batch []zonefile.Record) error {
		for i := range batch {
			m.record(&batch[i])
		}
		if m.in.Report != nil {
			m.in.Report(len(m.gather.records))
		}
		return ctx.Err()
	})
	var bad *zonefile.ProblemsError
	if errors.As(err, &bad) && len(m.faults) > 0 {
		all := append(bad.Problems, m.faults...)
		slices.SortStableFunc(all, func(a, b zonefile.Problem) int { return cmp.Compare(a.Line, b.Line) })
		return &zonefile.ProblemsError{Problems: all}
	}
	if err == nil && len(m.faults) > 0 {
		err = &zonefile.ProblemsError{Problems: m.faults}
	}
	return err
}

// problem notes what is wrong with a record.
func (m *importer) problem(r *zonefile.Record, text, mend string) {
	if len(m.faults) < maxFaults {
		m.faults = append(m.faults, zonefile.Problem{File: r.File, Line: r.Line, Text: text, Mend: mend, Level: zonefile.Error})
	}
}

// record takes one record.
func (m *importer) record(r *zonefile.Record) {
	switch {
	case !r.Owner.Under(m.apex):
		m.problem(r, fmt.Sprintf("%s is out of the zone %s", r.Owner, m.apex), "move it to its own zone")
	case r.Class != wire.ClassIN || !inZones(r.Type):
		m.problem(r, wire.TypeString(r.Type)+" cannot be in a zone", "remove it")
	case r.Type == wire.TypeSOA && len(r.Owner) == len(m.apex):
		m.apexSOA(r)
	default:
		if err := m.builder.Add(r.Owner, r.Type, r.TTL, r.RDATA); err != nil {
			m.problem(r, err.Error(), "")
			return
		}
		m.gather.add(r)
	}
}

// apexSOA keeps the SOA record aside: its serial is settled when all is read.
func (m *importer) apexSOA(r *zonefile.Record) {
	switch {
	case !wire.CheckRDATA(r.Type, r.RDATA):
		m.problem(r, zone.ErrRDATA.Error(), "")
	case len(m.soa) == 0:
		kept := *r
		kept.Owner, kept.RDATA = bytes.Clone(r.Owner), bytes.Clone(r.RDATA)
		m.soa = append(m.soa, kept)
	case !sameFolded(r.Type, m.soa[0].RDATA, r.RDATA):
		m.problem(r, zone.ErrTwoSOA.Error(), "keep one")
	}
}

// placeSOA settles the serial and adds the SOA record. explicit tells that the
// serial is the one that came.
func (m *importer) placeSOA() (explicit bool, err error) {
	if len(m.soa) == 0 {
		return false, zone.ErrNoSOA
	}
	r := &m.soa[0]
	explicit = !m.there || newer(soaSerial(r.RDATA), m.have.Serial)
	if !explicit {
		if m.in.Exact && soaSerial(r.RDATA) != m.have.Serial {
			return false, fmt.Errorf("importing serial %d over %d: %w", soaSerial(r.RDATA), m.have.Serial, ErrSerial)
		}
		setSerial(r.RDATA, m.s.cfg.Serial.next(m.have.Serial, m.s.cfg.Now()))
	}
	m.gather.add(r)
	return explicit, m.builder.Add(r.Owner, r.Type, r.TTL, r.RDATA)
}

// finish orders the records while the zone is built beside it.
func (m *importer) finish() (*zone.Zone, error) {
	var z *zone.Zone
	var built error
	var wg sync.WaitGroup
	wg.Go(func() { z, built = m.builder.Zone() })
	m.gather.sort()
	wg.Wait()
	m.builder = nil
	return z, built
}

// commit makes chunks of the sets in order, judges them, and writes them.
func (m *importer) commit(z *zone.Zone, explicit bool) (Result, error) {
	judge := rules{apex: m.apex}
	var made chunker
	err := m.gather.each(func(s *set, line int) error {
		judge.take(s, line)
		made.add(s)
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	made.end()
	if !judge.end() {
		return Result{}, judge.problems(m.gather.file)
	}
	m.gather = gatherer{} // its memory is not needed any more
	what := "import"
	if !m.there {
		what = "create"
	}
	c := &commit{s: m.s, apex: m.apex, have: m.have, there: m.there, zone: z, by: m.in.By, what: what,
		chunks: &made, raised: !explicit, exact: m.in.Exact}
	return c.run()
}

// problems is the faults of a zone as zone files have them.
func (r *rules) problems(file string) error {
	all := make([]zonefile.Problem, 0, len(r.faults)+1)
	for _, f := range r.faults {
		all = append(all, zonefile.Problem{File: file, Line: f.line, Text: f.text, Mend: f.mend, Level: zonefile.Error})
	}
	if r.more {
		all = append(all, zonefile.Problem{File: file, Level: zonefile.Warning, Text: "there are more problems than are told"})
	}
	return &zonefile.ProblemsError{Problems: all}
}
