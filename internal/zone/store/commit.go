package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
)

// commit is one change of a zone, validated, on its way to the disk: a whole zone
// (chunks) or some RRsets (changes).
type commit struct {
	s     *Store
	apex  wire.Name
	have  head
	there bool // the zone is in the store, as have tells
	zone  *zone.Zone
	by    Author
	what  string

	chunks  *chunker
	changes []change // in order; used where chunks is nil

	raised bool // nobody stated the serial: a change of it alone is none
	exact  bool // nobody may have raised it: other changes are ErrSerial
}

// errUnchanged ends a transaction that has nothing to write.
var errUnchanged = errors.New("nothing changed")

// run writes the change. When it returns without an error the change is on disk.
func (c *commit) run() (Result, error) {
	var v Version
	err := c.s.update(func(tx *bbolt.Tx) error {
		b, err := c.bucket(tx)
		if err != nil {
			return err
		}
		d := &delta{most: c.s.cfg.Octets}
		if err := c.difference(b, d); err != nil {
			return err
		}
		if c.there && !d.real && (c.raised || !d.any) {
			return errUnchanged
		}
		if c.raised && c.exact {
			return ErrSerial
		}
		if err := c.records(b); err != nil {
			return err
		}
		v, err = c.remember(b, d)
		return err
	})
	if errors.Is(err, errUnchanged) {
		v, err := c.s.newest(c.apex)
		return Result{Version: v, Unchanged: true}, err
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Zone: c.zone, Version: v}, nil
}

// bucket is the zone's bucket, made where the zone is new.
func (c *commit) bucket(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if c.there {
		b := zoneBucket(tx, c.apex)
		if b == nil {
			return nil, ErrNoZone
		}
		return b, nil
	}
	b, err := tx.Bucket(zonesBucket).CreateBucket(c.apex)
	if err != nil {
		return nil, fmt.Errorf("making the zone's bucket: %w", err)
	}
	for _, name := range [][]byte{chunksBucket, historyBucket, diffsBucket} {
		if _, err := b.CreateBucket(name); err != nil {
			return nil, fmt.Errorf("making the zone's bucket: %w", err)
		}
	}
	return b, nil
}

// difference compares the zone with what is in its bucket.
func (c *commit) difference(b *bbolt.Bucket, d *delta) error {
	if c.chunks == nil {
		for i := range c.changes {
			d.add(&c.changes[i])
		}
		return nil
	}
	before, after := walkBucket(b.Bucket(chunksBucket)), walkChunks(c.chunks.done)
	old, fresh := before.next(), after.next()
	for old || fresh {
		order := 0
		switch {
		case !fresh:
			order = -1
		case !old:
			order = 1
		default:
			order = compareSets(&before.set, &after.set)
		}
		var ch change
		if order >= 0 {
			ch.name, ch.typ, ch.new = after.set.name, after.set.typ, after.set.body
			fresh = after.next()
		}
		if order <= 0 {
			ch.name, ch.typ, ch.old = before.set.name, before.set.typ, before.set.body
			old = before.next()
		}
		d.add(&ch)
	}
	return errors.Join(before.err, after.err)
}

// records writes the zone's records.
func (c *commit) records(b *bbolt.Bucket) error {
	if c.chunks == nil {
		return patch(b.Bucket(chunksBucket), c.changes)
	}
	if err := b.DeleteBucket(chunksBucket); err != nil {
		return fmt.Errorf("removing the old records: %w", err)
	}
	chunks, err := b.CreateBucket(chunksBucket)
	if err != nil {
		return fmt.Errorf("making room for records: %w", err)
	}
	return c.chunks.put(chunks)
}

// remember writes head and history.
func (c *commit) remember(b *bbolt.Bucket, d *delta) (Version, error) {
	now := c.s.cfg.Now().UTC()
	h := c.have
	if !c.there {
		h.Created, h.Oldest = now, 1
	}
	h.Number++
	h.Serial, h.Records, h.Changed = c.zone.Serial(), c.zone.Records(), now
	v := Version{Number: h.Number, Serial: h.Serial, Time: now, Who: c.by.Who, What: c.what, Note: c.by.Note,
		Records: h.Records, Added: d.added, Removed: d.removed}
	if c.there { // the first version follows nothing
		v.Octets = int64(len(d.data))
		h.Octets += v.Octets
		if err := c.keepDifference(b, &h, d); err != nil {
			return v, err
		}
	}
	if err := putJSON(b.Bucket(historyBucket), numberKey(v.Number), v); err != nil {
		return v, err
	}
	return v, putJSON(b, headKey, h)
}

// keepDifference writes the difference, and drops versions that are too old or, as
// differences lead back from the newest, cannot be reached.
func (c *commit) keepDifference(b *bbolt.Bucket, h *head, d *delta) error {
	diffs, history := b.Bucket(diffsBucket), b.Bucket(historyBucket)
	if err := diffs.Put(numberKey(h.Number), seal(d.data)); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	for h.Oldest < h.Number && (d.full || h.Octets > c.s.cfg.Octets || h.Number-h.Oldest >= uint64(c.s.cfg.Versions)) {
		if err := history.Delete(numberKey(h.Oldest)); err != nil {
			return fmt.Errorf("shortening the history: %w", err)
		}
		h.Oldest++
		h.Octets -= max(0, int64(len(diffs.Get(numberKey(h.Oldest))))-sumSize)
		if err := diffs.Delete(numberKey(h.Oldest)); err != nil { // it led from the one that is gone
			return fmt.Errorf("shortening the history: %w", err)
		}
	}
	return nil
}

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func putJSON(b *bbolt.Bucket, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = b.Put(key, text)
	}
	if err != nil {
		return fmt.Errorf("writing %T: %w", v, err)
	}
	return nil
}

// delta is the difference of two versions on its way into the history.
type delta struct {
	most           int64 // octets to keep
	data           []byte
	full           bool // there was more than most: data is nothing
	added, removed int  // records
	any            bool // there is a difference
	real           bool // there is more than another serial
}

// add takes the next change, in order, unless nothing changed. Nothing of it is
// kept.
func (d *delta) add(c *change) {
	if bytes.Equal(c.old, c.new) {
		return
	}
	added, removed := countChange(c.old, c.new)
	d.added, d.removed = d.added+added, d.removed+removed
	d.any = true
	d.real = d.real || !onlySerial(c)
	if d.full {
		return
	}
	d.data = appendChange(d.data, c)
	if int64(len(d.data)) > d.most {
		d.data, d.full = nil, true
	}
}

// countChange counts the records that are in one body only. Both are in order.
func countChange(old, fresh []byte) (added, removed int) {
	for len(old) > 0 && len(fresh) > 0 {
		a, b := old[:recordSize(old)], fresh[:recordSize(fresh)]
		switch order := bytes.Compare(a[6:], b[6:]); {
		case order == 0 && bytes.Equal(a, b):
			old, fresh = old[len(a):], fresh[len(b):]
		case order <= 0:
			removed++
			old = old[len(a):]
		default:
			added++
			fresh = fresh[len(b):]
		}
	}
	return added + countRecords(fresh), removed + countRecords(old)
}

// recordSize is the octets of the first record of a body.
func recordSize(body []byte) int {
	return min(len(body), 6+int(binary.BigEndian.Uint16(body[4:])))
}

// onlySerial tells whether a change is that of an SOA record's serial alone.
func onlySerial(c *change) bool {
	if c.typ != wire.TypeSOA || len(c.old) != len(c.new) || len(c.old) < 26 {
		return false
	}
	a, b := bytes.Clone(c.old), bytes.Clone(c.new)
	setSerial(a, 0)
	setSerial(b, 0)
	return bytes.Equal(a, b)
}
