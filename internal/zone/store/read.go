package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// Info is what a list of zones tells of each.
type Info struct {
	Zone     wire.Name
	Serial   uint32
	Records  int
	Versions uint64 // changes since it was created, which is the first
	Created  time.Time
	Changed  time.Time
}

// Zones lists the zones, ordered by name.
func (s *Store) Zones() ([]Info, error) {
	var all []Info
	err := guarded(func() error {
		return closed(s.db.View(func(tx *bbolt.Tx) error {
			zones := tx.Bucket(zonesBucket)
			return zones.ForEachBucket(func(apex []byte) error {
				info, err := readInfo(zones.Bucket(apex), apex)
				all = append(all, info)
				return err
			})
		}))
	})
	if err != nil {
		return nil, fmt.Errorf("listing the zones of the store: %w", err)
	}
	slices.SortFunc(all, func(a, b Info) int { return wire.Compare(a.Zone, b.Zone) })
	return all, nil
}

// Info tells of one zone, or ErrNoZone.
func (s *Store) Info(apex wire.Name) (Info, error) {
	var info Info
	err := s.view(apex, func(b *bbolt.Bucket) error {
		var err error
		info, err = readInfo(b, apex.Fold())
		return err
	})
	if err != nil {
		return Info{}, fmt.Errorf("looking up zone %s: %w", apex, err)
	}
	return info, nil
}

func readInfo(b *bbolt.Bucket, apex []byte) (Info, error) {
	name := wire.Name(bytes.Clone(apex))
	if wire.UncompressedEnd(name, 0) != len(name) {
		return Info{}, fmt.Errorf("reading the name of a zone: %w", ErrDamaged)
	}
	h, err := readHead(b)
	return Info{Zone: name, Serial: h.Serial, Records: h.Records, Versions: h.Number, Created: h.Created, Changed: h.Changed}, err
}

// Load builds the present version of a zone.
func (s *Store) Load(apex wire.Name) (*zone.Zone, error) {
	c := &commit{s: s, apex: apex.Fold(), what: "load"}
	err := s.view(apex, func(b *bbolt.Bucket) error {
		var err error
		if c.have, err = readHead(b); err != nil {
			return err
		}
		return c.build(walkBucket(b.Bucket(chunksBucket)))
	})
	if err != nil {
		return nil, fmt.Errorf("loading zone %s from the store: %w", apex, err)
	}
	return c.zone, nil
}

// copyChunks copies the chunks of a zone, so that no transaction waits for whoever
// reads them: an open one keeps the file from growing.
func (s *Store) copyChunks(apex wire.Name) ([]chunk, error) {
	var all []chunk
	err := s.view(apex, func(b *bbolt.Bucket) error {
		return b.Bucket(chunksBucket).ForEach(func(_, v []byte) error {
			all = append(all, chunk{data: bytes.Clone(v)})
			return nil
		})
	})
	return all, err
}

// Records hands out all records of the present version in batches, the SOA record
// first, then by owner and type; each batch is valid until each returns. The
// caller may be slow: the store goes on. An error of each ends it. It is a Source.
func (s *Store) Records(ctx context.Context, apex wire.Name, each func([]zonefile.Record) error) error {
	chunks, err := s.copyChunks(apex)
	if err == nil {
		err = export(ctx, chunks, apex.Fold(), each)
	}
	if err != nil {
		return fmt.Errorf("reading zone %s from the store: %w", apex, err)
	}
	return nil
}

// exporter makes batches of records of sets.
type exporter struct {
	apex  wire.Name
	batch []zonefile.Record
}

func (e *exporter) add(s *set) error {
	owner := appendOwner(nil, s.name, e.apex)
	return eachRecord(s.body, func(r record) error {
		e.batch = append(e.batch, zonefile.Record{Owner: owner, Type: s.typ, Class: wire.ClassIN, TTL: r.ttl, RDATA: r.rdata})
		return nil
	})
}

// sets adds the sets of a chunk that want tells.
func (e *exporter) sets(c chunk, want func(s *set) bool) error {
	w := walkChunks([]chunk{c})
	for w.next() {
		if !want(&w.set) {
			continue
		}
		if err := e.add(&w.set); err != nil {
			return err
		}
	}
	return w.err
}

// isApexSOA tells whether a set is the zone's SOA record.
func isApexSOA(s *set) bool { return s.typ == wire.TypeSOA && len(s.name) == 1 }

func export(ctx context.Context, chunks []chunk, apex wire.Name, each func([]zonefile.Record) error) error {
	e := exporter{apex: apex}
	for i := range chunks {
		if i == 0 {
			if err := e.sets(chunks[0], isApexSOA); err != nil {
				return err
			}
		}
		if err := e.sets(chunks[i], func(s *set) bool { return !isApexSOA(s) }); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(e.batch); err != nil {
			return err
		}
		e.batch = e.batch[:0]
	}
	return nil
}

// Page selects RRsets for a list.
type Page struct {
	Owner wire.Name // only of this owner; nil is any
	Under wire.Name // only at or below this name; nil is any
	Type  uint16    // only of this type; 0 is any
	Skip  int       // of what is selected
	Most  int       // RRsets, 1,000 if 0
}

// RRsets lists RRsets of the present version, ordered by owner and type. more
// tells that there are others behind the page.
func (s *Store) RRsets(apex wire.Name, p Page) (sets []RRset, more bool, err error) {
	if p.Most <= 0 {
		p.Most = 1000
	}
	folded := apex.Fold()
	err = s.view(apex, func(b *bbolt.Bucket) error {
		w := walkBucket(b.Bucket(chunksBucket))
		if p.Owner != nil {
			if !p.Owner.Under(folded) {
				return ErrOutOfZone
			}
			_, data, _ := chunkOf(b.Bucket(chunksBucket), nameKey(nil, relative(p.Owner, folded)))
			w = walkChunks([]chunk{{data: data}})
		}
		sets, more, err = p.list(w, folded)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("listing RRsets of zone %s: %w", apex, err)
	}
	return sets, more, nil
}

// list takes the page out of w.
func (p *Page) list(w *walker, apex wire.Name) (sets []RRset, more bool, err error) {
	var owner wire.Name
	for w.next() {
		owner = appendOwner(owner[:0], w.set.name, apex)
		switch {
		case !p.selects(owner, w.set.typ):
			continue
		case p.Skip > 0:
			p.Skip--
			continue
		case len(sets) == p.Most:
			return sets, true, nil
		}
		set, err := exportSet(&w.set, apex)
		if err != nil {
			return nil, false, err
		}
		sets = append(sets, set)
	}
	return sets, false, w.err
}

func (p *Page) selects(owner wire.Name, typ uint16) bool {
	return (p.Type == 0 || p.Type == typ) && (p.Owner == nil || wire.EqualFold(p.Owner, owner)) && (p.Under == nil || owner.Under(p.Under))
}

// Delete removes a zone with its history. match is the serial that the zone has to
// have, else ErrMatch; nil is any.
func (s *Store) Delete(ctx context.Context, apex wire.Name, serial *uint32) error {
	leave, err := s.take(ctx, apex)
	if err != nil {
		return fmt.Errorf("deleting zone %s: %w", apex, err)
	}
	defer leave()
	err = s.update(func(tx *bbolt.Tx) error {
		b := zoneBucket(tx, apex)
		if b == nil {
			return ErrNoZone
		}
		h, err := readHead(b)
		if err == nil { // a zone whose head is damaged can be deleted all the same
			err = match(serial, h.Serial)
		} else if serial == nil {
			err = nil
		}
		if err != nil {
			return err
		}
		return tx.Bucket(zonesBucket).DeleteBucket(apex.Fold())
	})
	if err != nil {
		return fmt.Errorf("deleting zone %s: %w", apex, err)
	}
	return nil
}
