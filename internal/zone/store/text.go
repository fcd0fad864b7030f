package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
	"github.com/waymark-dns/waymark/internal/zone/zonetext"
)

// ErrTooLarge is a master file of more octets than allowed.
var ErrTooLarge = errors.New("master file is larger than allowed")

// Text is a master file that comes from elsewhere, such as the body of a request.
type Text struct {
	Name   string    // that problems give it
	Body   io.Reader // is read once
	Most   int64     // octets, 8 GiB if 0; more are ErrTooLarge
	Origin wire.Name // the apex
}

// Source reads the text as it comes, parsed in parallel and never in memory whole;
// $INCLUDE is an error in it. RDATA in the form for unknown types is taken as a
// transfer's is, so whatever Export wrote can be imported. A source is used once; it
// waits for a Read of the body that is under way.
func (s *Store) Source(t Text) Source {
	return func(ctx context.Context, each func([]zonefile.Record) error) error {
		if t.Most <= 0 {
			t.Most = 8 << 30
		}
		o := zonefile.Options{Origin: t.Origin, Opaque: true, Limits: zonefile.Limits{Bytes: t.Most + 1}} // body tells first
		return zonefile.ReadStream(t.Name, &bodyReader{ctx: ctx, r: t.Body, left: t.Most}, o, each)
	}
}

// bodyReader ends with its context and with the octets that are allowed.
type bodyReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > b.left+1 { // one more shows that there is more
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// Export writes the present version as a master file: the SOA record first, then
// the others by owner and type, names relative to the apex. w may be slow: the
// store goes on. An error of w ends it. A Source of Text takes it back.
func (s *Store) Export(ctx context.Context, apex wire.Name, w io.Writer) error {
	chunks, err := s.copyChunks(apex)
	if err == nil {
		apex = apex.Fold()
		err = zonetext.Write(w, apex, printed(ctx, chunks, apex))
	}
	if err != nil {
		return fmt.Errorf("exporting zone %s: %w", apex, err)
	}
	return nil
}

// printer hands sets out as they are printed.
type printer struct {
	apex  wire.Name
	set   zonetext.RRset
	yield func(zonetext.RRset, error) bool
	over  bool // nobody wants more
}

// printed is all sets of chunks, the SOA record first.
func printed(ctx context.Context, chunks []chunk, apex wire.Name) iter.Seq2[zonetext.RRset, error] {
	return func(yield func(zonetext.RRset, error) bool) {
		p := printer{apex: apex, yield: yield}
		p.sets(chunks[:min(1, len(chunks))], isApexSOA)
		for i := range chunks {
			if err := ctx.Err(); err != nil && !p.over {
				p.over = true
				yield(zonetext.RRset{}, err)
			}
			p.sets(chunks[i:i+1], func(s *set) bool { return !isApexSOA(s) })
		}
	}
}

// sets hands out the sets of chunks that want tells.
func (p *printer) sets(chunks []chunk, want func(s *set) bool) {
	w := walkChunks(chunks)
	var err error
	for !p.over && err == nil && w.next() {
		if want(&w.set) {
			err = p.one(&w.set)
		}
	}
	if err = errors.Join(err, w.err); err != nil && !p.over {
		p.over = true
		p.yield(zonetext.RRset{}, err)
	}
}

// one hands out a set, in as many as it has TTLs in turn.
func (p *printer) one(s *set) error {
	p.set.Owner, p.set.Type, p.set.RDATA = appendOwner(p.set.Owner[:0], s.name, p.apex), s.typ, p.set.RDATA[:0]
	err := eachRecord(s.body, func(r record) error {
		if len(p.set.RDATA) > 0 && r.ttl != p.set.TTL {
			p.over = p.over || !p.yield(p.set, nil)
			p.set.RDATA = p.set.RDATA[:0]
		}
		p.set.TTL, p.set.RDATA = r.ttl, append(p.set.RDATA, r.rdata)
		return nil
	})
	if err == nil && !p.over {
		p.over = !p.yield(p.set, nil)
	}
	return err
}

// parse adds what Data tells to RDATA.
func (o *Op) parse(apex wire.Name) error {
	all := o.RDATA[:len(o.RDATA):len(o.RDATA)]
	for i, text := range o.Data {
		rdata, err := zonefile.ParseRDATA(o.Type, text, apex)
		if err != nil {
			return fmt.Errorf("reading data %d: %w: %w", i, ErrRDATA, err)
		}
		all = append(all, rdata)
	}
	o.RDATA, o.Data = all, nil
	return nil
}
