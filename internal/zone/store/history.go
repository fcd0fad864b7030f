package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonetext"
)

// Version is one entry of a zone's history.
type Version struct {
	Number  uint64    `json:"number"` // counts the zone's changes, from 1
	Serial  uint32    `json:"serial"`
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	What    string    `json:"what"` // create, import, edit or restore
	Note    string    `json:"note,omitempty"`
	Records int       `json:"records"` // of the zone
	Added   int       `json:"added"`   // records that the version before did not have
	Removed int       `json:"removed"` // records of the version before that are gone
	Octets  int64     `json:"octets"`  // of the difference to the version before
}

// History is the versions of a zone that can be restored, the newest first. It is
// bounded by Config.Versions and Config.Octets.
func (s *Store) History(apex wire.Name) ([]Version, error) {
	var all []Version
	err := s.view(apex, func(b *bbolt.Bucket) error {
		var err error
		all, err = readHistory(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the history of zone %s: %w", apex, err)
	}
	return all, nil
}

func readHistory(b *bbolt.Bucket) ([]Version, error) {
	var all []Version
	err := b.Bucket(historyBucket).ForEach(func(_, text []byte) error {
		var v Version
		if err := json.Unmarshal(text, &v); err != nil {
			return fmt.Errorf("reading the history: %w: %w", ErrDamaged, err)
		}
		all = append(all, v)
		return nil
	})
	slices.Reverse(all)
	return all, err
}

// newest is the newest version of a zone.
func (s *Store) newest(apex wire.Name) (Version, error) {
	all, err := s.History(apex)
	if err != nil {
		return Version{}, err
	}
	if len(all) == 0 {
		return Version{}, fmt.Errorf("reading the history of zone %s: %w", apex, ErrDamaged)
	}
	return all[0], nil
}

// bySerial is the newest version with that serial.
func bySerial(all []Version, serial uint32) (Version, error) {
	for _, v := range all {
		if v.Serial == serial {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("looking for serial %d: %w", serial, ErrNoVersion)
}

// RRset is the records of one owner and type.
type RRset struct {
	Owner wire.Name
	Type  uint16
	TTL   uint32   // of the first record
	RDATA [][]byte // uncompressed
	Data  []string // the same in presentation format, names absolute; Op.Data takes it back
}

// Change is what differs in one RRset between two versions. It is in memory of its
// own.
type Change struct {
	Owner    wire.Name
	Type     uint16
	Old, New RRset // without RDATA where it is not there
}

// Diff is what differs between the versions with two serials, ordered by owner and
// type, from one to the other.
func (s *Store) Diff(apex wire.Name, from, to uint32) ([]Change, error) {
	var out []Change
	err := s.view(apex, func(b *bbolt.Bucket) error {
		all, err := readHistory(b)
		if err != nil {
			return err
		}
		a, err := bySerial(all, from)
		if err != nil {
			return err
		}
		z, err := bySerial(all, to)
		if err != nil {
			return err
		}
		changes, err := between(b, a.Number, z.Number)
		if err != nil {
			return err
		}
		for i := range changes {
			c, err := changes[i].export(apex)
			if err != nil {
				return err
			}
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("comparing versions of zone %s: %w", apex, err)
	}
	return out, nil
}

func (c *change) export(apex wire.Name) (Change, error) {
	out := Change{Owner: appendOwner(nil, c.name, apex), Type: c.typ}
	var err error
	if out.Old, err = exportSet(c.set(c.old), apex); err != nil {
		return out, err
	}
	out.New, err = exportSet(c.set(c.new), apex)
	return out, err
}

// exportSet is a set in memory of its own.
func exportSet(s *set, apex wire.Name) (RRset, error) {
	out := RRset{Owner: appendOwner(nil, s.name, apex), Type: s.typ}
	var text []byte
	err := eachRecord(s.body, func(r record) error {
		if out.RDATA == nil {
			out.TTL = r.ttl
		}
		out.RDATA = append(out.RDATA, slices.Clone(r.rdata))
		text = zonetext.AppendRDATA(text[:0], s.typ, r.rdata, nil)
		out.Data = append(out.Data, string(text))
		return nil
	})
	return out, err
}

// between is the changes that lead from one version to another, in order. Both are
// in the history.
func between(b *bbolt.Bucket, from, to uint64) ([]change, error) {
	low, high := min(from, to), max(from, to)
	net := map[string]*change{}
	for n := low + 1; n <= high; n++ {
		data, err := unseal(b.Bucket(diffsBucket).Get(numberKey(n)))
		if err != nil {
			return nil, err
		}
		changes, err := readChanges(data)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			c := &changes[i]
			key := string(appendKey(nil, c.name.Fold(), c.typ))
			if have := net[key]; have != nil {
				have.new = slices.Clone(c.new)
				continue
			}
			own := c.clone()
			net[key] = &own
		}
	}
	out := make([]change, 0, len(net))
	for _, c := range net {
		if from > to {
			c.old, c.new = c.new, c.old
		}
		if !slices.Equal(c.old, c.new) {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, compareChanges)
	return out, nil
}

// Restore is a version to go back to.
type Restore struct {
	Zone   wire.Name
	Serial uint32  // of the version, as History tells it
	Match  *uint32 // serial that the zone has to have, else ErrMatch; nil is any
	By     Author
}

// Restore gives a zone the records of an earlier version. That is a new version
// with a serial that grows, so that secondaries follow (RFC 1982); the versions
// between stay in the history. The errors are those of Edit, and ErrNoVersion.
func (s *Store) Restore(ctx context.Context, r Restore) (Result, error) {
	result, err := s.restore(ctx, &r)
	if err != nil {
		return Result{}, fmt.Errorf("restoring version %d of zone %s: %w", r.Serial, r.Zone, err)
	}
	return result, nil
}

func (s *Store) restore(ctx context.Context, r *Restore) (Result, error) {
	apex := r.Zone.Fold()
	leave, err := s.take(ctx, apex)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	c := &commit{s: s, apex: apex, there: true, by: r.By, what: fmt.Sprintf("restore %d", r.Serial)}
	err = s.view(apex, func(b *bbolt.Bucket) error {
		if c.have, err = readHead(b); err != nil {
			return err
		}
		if err := match(r.Match, c.have.Serial); err != nil {
			return err
		}
		all, err := readHistory(b)
		if err != nil {
			return err
		}
		v, err := bySerial(all, r.Serial)
		if err != nil {
			return err
		}
		changes, err := between(b, c.have.Number, v.Number)
		if err != nil {
			return err
		}
		w := &workspace{apex: apex, chunks: b.Bucket(chunksBucket), sets: map[string]*change{}}
		for i := range changes {
			w.sets[string(appendKey(nil, changes[i].name.Fold(), changes[i].typ))] = &changes[i]
		}
		return c.prepare(b, w, nil)
	})
	if err != nil {
		return Result{}, err
	}
	return c.run()
}
