package store

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
	"github.com/waymark-dns/waymark/internal/zone/zonetext"
)

// FileZone is a zone that a master file has. It is not in the store, and is read as
// the zones there are.
type FileZone struct {
	apex wire.Name
	sets []RRset // without Data
}

// ReadFile reads a zone's file. What is wrong with records is a
// *zonefile.ProblemsError.
func ReadFile(ctx context.Context, file string, apex wire.Name) (*FileZone, error) {
	var all []fileRecord
	err := zonefile.Read(file, zonefile.Options{Origin: apex}, func(batch []zonefile.Record) error {
		for i := range batch {
			rec := &batch[i]
			all = append(all, fileRecord{rec.Owner.Fold(), rec.Type, rec.TTL, bytes.Clone(rec.RDATA)})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	first := func(r *fileRecord) int { // the SOA record of the apex comes before all
		if r.typ == wire.TypeSOA && wire.EqualFold(r.owner, apex) {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b fileRecord) int {
		return cmp.Or(first(&a)-first(&b), wire.Compare(a.owner, b.owner), cmp.Compare(a.typ, b.typ), bytes.Compare(a.rdata, b.rdata))
	})
	z := &FileZone{apex: apex}
	for i := range all {
		z.add(&all[i])
	}
	return z, nil
}

// fileRecord is one record, in memory of its own.
type fileRecord struct {
	owner wire.Name
	typ   uint16
	ttl   uint32
	rdata []byte
}

// add adds a record to the last RRset, or begins another.
func (z *FileZone) add(rec *fileRecord) {
	n := len(z.sets) - 1
	if n < 0 || z.sets[n].Type != rec.typ || z.sets[n].TTL != rec.ttl || !wire.EqualFold(z.sets[n].Owner, rec.owner) {
		z.sets = append(z.sets, RRset{Owner: rec.owner, Type: rec.typ, TTL: rec.ttl})
		n++
	}
	z.sets[n].RDATA = append(z.sets[n].RDATA, rec.rdata)
}

// has tells whether a page is about that RRset.
func (p *Page) has(set *RRset) bool {
	return (p.Owner == nil || wire.EqualFold(set.Owner, p.Owner)) && (p.Under == nil || set.Owner.Under(p.Under)) && (p.Type == 0 || set.Type == p.Type)
}

// RRsets lists RRsets, as Store.RRsets does.
func (z *FileZone) RRsets(p Page) (list []RRset, more bool) {
	most := p.Most
	if most == 0 {
		most = 1000
	}
	for i := range z.sets {
		if !p.has(&z.sets[i]) {
			continue
		}
		if p.Skip > 0 {
			p.Skip--
			continue
		}
		if len(list) == most {
			return list, true
		}
		set := z.sets[i]
		for _, rdata := range set.RDATA {
			set.Data = append(set.Data, string(zonetext.AppendRDATA(nil, set.Type, rdata, nil)))
		}
		list = append(list, set)
	}
	return list, false
}

// Export writes the zone as a master file, as Store.Export does.
func (z *FileZone) Export(w io.Writer) error {
	return zonetext.Write(w, z.apex, func(yield func(zonetext.RRset, error) bool) {
		for _, set := range z.sets {
			if !yield(zonetext.RRset{Owner: set.Owner, Type: set.Type, TTL: set.TTL, RDATA: set.RDATA}, nil) {
				return
			}
		}
	})
}
