package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// Verb is what an operation does with an RRset.
type Verb uint8

// Verbs of operations.
const (
	Add    Verb = iota // records join the RRset, which is made where it is not there; the TTL becomes that of all
	Set                // records become the RRset
	Delete             // records leave the RRset; without RDATA all do
)

// Op is an operation on one RRset. Operations of an edit follow each other: each
// sees what those before it did.
type Op struct {
	Do    Verb
	Owner wire.Name // absolute
	Type  uint16    // 0 with Delete: all types of the owner, except SOA and NS of the apex
	TTL   uint32    // seconds, below 2^31
	RDATA [][]byte  // uncompressed
	Data  []string  // more RDATA, in presentation format, names relative to the apex; no comments
}

// Edit is operations that are done together or not at all.
type Edit struct {
	Zone   wire.Name
	Ops    []Op
	Match  *uint32 // serial that the zone has to have, else ErrMatch; nil is any
	Serial *uint32 // of the new version, newer than the present one, else ErrSerial; nil grows by the store's policy, or is that of an SOA record among the operations where it is newer
	By     Author
}

// OpError is what is wrong with one operation. An edit's error holds all of them.
type OpError struct {
	Op  int // index
	Err error
}

// Error tells the operation, from 0, and what is wrong.
func (e *OpError) Error() string { return fmt.Sprintf("operation %d: %v", e.Op, e.Err) }

// Unwrap is the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Errors of operations.
var (
	ErrOutOfZone = errors.New("owner is outside the zone")
	ErrType      = errors.New("records of that type cannot be in a zone")
	ErrRDATA     = errors.New("RDATA does not have the layout of its type")
	ErrTTL       = errors.New("TTL is above 2147483647 (RFC 2181 section 8)")
	ErrNoRDATA   = errors.New("operation without RDATA")
	ErrVerb      = errors.New("unknown operation")
)

// Edit changes some RRsets of a zone. The zone that would come of it is validated
// as a whole first; on any error nothing has changed.
func (s *Store) Edit(ctx context.Context, e Edit) (Result, error) {
	result, err := s.edit(ctx, &e)
	if err != nil {
		return Result{}, fmt.Errorf("editing zone %s: %w", e.Zone, err)
	}
	return result, nil
}

func (s *Store) edit(ctx context.Context, e *Edit) (Result, error) {
	apex := e.Zone.Fold()
	ops, err := checkOps(e.Ops, apex)
	if err != nil {
		return Result{}, err
	}
	leave, err := s.take(ctx, apex)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	c := &commit{s: s, apex: apex, there: true, by: e.By, what: "edit"}
	err = s.view(apex, func(b *bbolt.Bucket) error {
		if c.have, err = readHead(b); err != nil {
			return err
		}
		if err := match(e.Match, c.have.Serial); err != nil {
			return err
		}
		w := &workspace{apex: apex, chunks: b.Bucket(chunksBucket), sets: map[string]*change{}}
		for i := range ops {
			if err := w.do(&ops[i]); err != nil {
				return &OpError{i, err}
			}
		}
		return c.prepare(b, w, e.Serial)
	})
	if err != nil {
		return Result{}, err
	}
	return c.run()
}

// checkOps judges operations without looking at the zone. The result is a copy that
// has all RDATA in wire format.
func checkOps(ops []Op, apex wire.Name) ([]Op, error) {
	var all []error
	ops = slices.Clone(ops)
	for i := range ops {
		if err := ops[i].check(apex); err != nil {
			all = append(all, &OpError{i, err})
		}
	}
	return ops, errors.Join(all...)
}

func (o *Op) check(apex wire.Name) error {
	switch {
	case o.Do > Delete:
		return ErrVerb
	case wire.UncompressedEnd(o.Owner, 0) != len(o.Owner) || !o.Owner.Under(apex):
		return ErrOutOfZone
	case !inZones(o.Type) && (o.Do != Delete || o.Type != 0):
		return ErrType
	case o.TTL >= 1<<31:
		return ErrTTL
	}
	if records := len(o.RDATA) + len(o.Data); records == 0 && o.Do != Delete || records > 0 && o.Type == 0 {
		return ErrNoRDATA
	}
	if err := o.parse(apex); err != nil {
		return err
	}
	for _, rdata := range o.RDATA {
		if !wire.CheckRDATA(o.Type, rdata) || len(rdata) > wire.MaxMessage {
			return ErrRDATA
		}
	}
	return nil
}

// workspace holds the RRsets that an edit has touched so far.
type workspace struct {
	apex   wire.Name
	chunks *bbolt.Bucket
	sets   map[string]*change // by folded relative owner and type
}

// do does one operation.
func (w *workspace) do(o *Op) error {
	rel := relative(o.Owner, w.apex)
	if o.Type == 0 {
		return w.clear(rel)
	}
	c, err := w.set(rel, o.Type)
	if err != nil {
		return err
	}
	switch {
	case o.Do == Delete && len(o.RDATA) == 0:
		c.new = nil
		return nil
	case o.Do == Set, o.Type == wire.TypeSOA && o.Do == Add: // there is one SOA record
		c.new = nil
	}
	have, err := records(c.new)
	if err != nil {
		return err
	}
	for _, rdata := range o.RDATA {
		have = slices.DeleteFunc(have, func(r record) bool { return sameFolded(o.Type, r.rdata, rdata) })
		if o.Do != Delete {
			have = append(have, record{o.TTL, rdata})
		}
	}
	c.new = body(have, o)
	return nil
}

// body is records in order. Those of an operation that adds give all their TTL,
// but for signatures, which have that of what they cover.
func body(have []record, o *Op) []byte {
	slices.SortFunc(have, func(a, b record) int { return bytes.Compare(a.rdata, b.rdata) })
	var dst []byte
	for _, r := range have {
		dst = appendRecord(dst, r.ttl, r.rdata)
	}
	if o.Do != Delete && o.Type != wire.TypeRRSIG {
		level(dst, o.TTL)
	}
	return dst
}

// set is what an edit knows of an RRset; it is looked up in the zone the first
// time.
func (w *workspace) set(rel wire.Name, typ uint16) (*change, error) {
	key := string(appendKey(nil, rel.Fold(), typ))
	if c := w.sets[key]; c != nil {
		return c, nil
	}
	c := &change{name: rel, typ: typ}
	err := w.at(rel, func(s *set) {
		if s.typ == typ {
			*c = change{bytes.Clone(s.name), typ, bytes.Clone(s.body), bytes.Clone(s.body)}
		}
	})
	w.sets[key] = c
	return c, err
}

// at calls do with the sets that an owner has in the store.
func (w *workspace) at(rel wire.Name, do func(s *set)) error {
	_, data, _ := chunkOf(w.chunks, nameKey(nil, rel))
	walk := walkChunks([]chunk{{data: data}})
	for data != nil && walk.next() {
		if wire.EqualFold(walk.set.name, rel) {
			do(&walk.set)
		}
	}
	return walk.err
}

// clear deletes all RRsets of an owner, but not what makes an apex.
func (w *workspace) clear(rel wire.Name) error {
	types := map[uint16]bool{}
	if err := w.at(rel, func(s *set) { types[s.typ] = true }); err != nil {
		return err
	}
	for _, c := range w.sets {
		if wire.EqualFold(c.name, rel) {
			types[c.typ] = true
		}
	}
	for typ := range types {
		if len(rel) == 1 && (typ == wire.TypeSOA || typ == wire.TypeNS) {
			continue
		}
		c, err := w.set(rel, typ)
		if err != nil {
			return err
		}
		c.new = nil
	}
	return nil
}

// prepare turns what an edit did into a commit: serial, order, and the zone that
// comes of it.
func (c *commit) prepare(b *bbolt.Bucket, w *workspace, serial *uint32) error {
	if err := c.grow(w, serial); err != nil {
		return err
	}
	for _, ch := range w.sets {
		if !bytes.Equal(ch.old, ch.new) {
			c.changes = append(c.changes, *ch)
		}
	}
	slices.SortFunc(c.changes, compareChanges)
	return c.build(walkBucket(b.Bucket(chunksBucket)))
}

// grow gives the SOA record the serial of the new version.
func (c *commit) grow(w *workspace, serial *uint32) error {
	soa, err := w.set(wire.Root, wire.TypeSOA)
	if err != nil {
		return err
	}
	if len(soa.new) < 26 {
		return zone.ErrNoSOA
	}
	switch have := c.have.Serial; {
	case serial != nil && !newer(*serial, have):
		return fmt.Errorf("going from serial %d to %d: %w", have, *serial, ErrSerial)
	case serial != nil:
		setSerial(soa.new, *serial)
	case !newer(soaSerial(soa.new), have):
		setSerial(soa.new, c.s.cfg.Serial.next(have, c.s.cfg.Now()))
		c.raised = true
	}
	return nil
}

// build makes the zone of the sets of w as the changes leave them.
func (c *commit) build(w *walker) error {
	judge := rules{apex: c.apex}
	builder := zone.NewBuilder(c.apex, c.have.Records)
	var owner wire.Name
	err := overlay(w, c.changes, func(s *set) error {
		judge.take(s, 0)
		owner = appendOwner(owner[:0], s.name, c.apex)
		return eachRecord(s.body, func(r record) error { return builder.Add(owner, s.typ, r.ttl, r.rdata) })
	})
	if err != nil {
		return err
	}
	if !judge.end() {
		return judge.problems(c.what)
	}
	c.zone, err = builder.Zone()
	return err
}
