package zone

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/waymark-dns/waymark/internal/dnssec"
	"github.com/waymark-dns/waymark/internal/wire"
)

// nsec3Chain is the NSEC3 records of a zone, in the order of their hashes. They
// stand apart from the nodes: their names do not exist (RFC 5155 §7.2.8).
type nsec3Chain struct {
	links  []nsec3Link
	params dnssec.NSEC3Params
}

type nsec3Link struct {
	hash dnssec.Hash
	name uint32 // offset of the owner in data
	set  set
}

// maxIterations is the most that RFC 5155 §10.3 lets any zone have: a negative
// answer costs a millisecond with it, and one with what the field can hold 20.
const maxIterations = 2500

// in tells whether the zone is signed with NSEC3.
func (c *nsec3Chain) in() bool { return len(c.links) > 0 }

// nsec3Record is an NSEC3 record, or the signature of one, on its way.
type nsec3Record struct {
	hash  dnssec.Hash
	owner wire.Name
	ttl   uint32
	typ   uint16
	rdata []byte
}

// addNSEC3 takes a record whose owner is a hash below the apex.
func (b *Builder) addNSEC3(owner wire.Name, typ uint16, ttl uint32, rdata []byte) error {
	if !owner.Under(b.z.name) {
		return fmt.Errorf("adding %s to zone %s: %w", owner, b.z.name, ErrOutOfZone)
	}
	if len(owner) != len(b.z.name)+1+dnssec.HashText {
		return fmt.Errorf("adding NSEC3 record %s: owner is not a hash below the apex: %w", owner, ErrRDATA)
	}
	hash, ok := dnssec.DecodeHash(owner[1 : 1+dnssec.HashText])
	if !ok {
		return fmt.Errorf("adding NSEC3 record %s: owner is not a hash: %w", owner, ErrRDATA)
	}
	b.later += len(owner) + 2 + len(rdata)
	mem := append(append(make([]byte, 0, len(owner)+len(rdata)), owner...), rdata...)
	b.nsec3 = append(b.nsec3, nsec3Record{hash, mem[:len(owner)], ttl, typ, mem[len(owner):]})
	return nil
}

// buildNSEC3 makes the chain: of the parameters that NSEC3PARAM at the apex
// names (RFC 5155 §7.1), records of another chain are left out.
func (b *Builder) buildNSEC3() error {
	z := &b.z
	param := z.set(0, wire.TypeNSEC3PARAM)
	if param == nil || len(b.nsec3) == 0 {
		return nil
	}
	p, ok := z.chosen(param)
	if !ok {
		return fmt.Errorf("building zone %s: NSEC3PARAM: %w", z.name, ErrRDATA)
	}
	if p.Iterations > maxIterations {
		return fmt.Errorf("building zone %s: %w", z.name, ErrHashing)
	}
	z.nsec3.params = dnssec.NSEC3Params{Iterations: p.Iterations, Salt: slices.Clone(p.Salt)}
	slices.SortStableFunc(b.nsec3, func(x, y nsec3Record) int {
		if c := bytes.Compare(x.hash[:], y.hash[:]); c != 0 {
			return c
		}
		return int(y.typ) - int(x.typ) // NSEC3 before its RRSIG
	})
	for _, r := range b.nsec3 {
		b.linkNSEC3(r)
	}
	b.nsec3 = nil
	return nil
}

// chosen is the parameters of the chain to answer from: the first whose flags
// are zero, others are not complete (RFC 5155 §4.1.2).
func (z *Zone) chosen(param *set) (p dnssec.NSEC3Params, ok bool) {
	for rdata := z.data[param.off : param.off+param.size]; len(rdata) > 0; {
		n := 2 + int(binary.BigEndian.Uint16(rdata))
		if p, ok = dnssec.ReadNSEC3(rdata[2:n]); ok && rdata[3] == 0 {
			return p, true
		}
		rdata = rdata[n:]
	}
	return p, ok
}

// linkNSEC3 adds a record to the chain, or its signature to the last link.
func (b *Builder) linkNSEC3(r nsec3Record) {
	z := &b.z
	links := z.nsec3.links
	last := len(links) - 1
	off := uint32(len(z.data))
	if r.typ == wire.TypeNSEC3 {
		p, ok := dnssec.ReadNSEC3(r.rdata)
		if !ok || p.Iterations != z.nsec3.params.Iterations || !bytes.Equal(p.Salt, z.nsec3.params.Salt) ||
			last >= 0 && links[last].hash == r.hash {
			return
		}
		z.data = append(z.data, r.owner...)
		off = uint32(len(z.data))
		b.appendRDATA(r.rdata)
		s := set{off: off, size: uint32(len(r.rdata) + 2), ttl: r.ttl, typ: r.typ, count: 1}
		z.nsec3.links = append(links, nsec3Link{hash: r.hash, name: off - uint32(len(r.owner)), set: s})
		return
	}
	if last < 0 || links[last].hash != r.hash {
		return
	}
	s := &links[last].set
	if s.sig != 0 && z.holds(&z.sigs[s.sig-1], r.rdata) {
		return
	}
	b.appendRDATA(r.rdata)
	if s.sig == 0 {
		z.sigs = append(z.sigs, set{off: off, size: uint32(len(r.rdata) + 2), ttl: r.ttl, typ: r.typ, count: 1})
		s.sig = uint32(len(z.sigs))
	} else { // sorted, so the signatures of one link follow each other
		g := &z.sigs[s.sig-1]
		g.size += uint32(len(r.rdata) + 2)
		g.count++
	}
}

func (b *Builder) appendRDATA(rdata []byte) {
	b.z.data = binary.BigEndian.AppendUint16(b.z.data, uint16(len(rdata)))
	b.z.data = append(b.z.data, rdata...)
}

// search is the index of the first link whose hash is not less than h, and
// whether it is equal.
func (c *nsec3Chain) search(h dnssec.Hash) (int, bool) {
	i := sort.Search(len(c.links), func(i int) bool { return bytes.Compare(c.links[i].hash[:], h[:]) >= 0 })
	return i, i < len(c.links) && c.links[i].hash == h
}

func (w *work) noteNSEC3(i int) {
	z := w.z
	l := &z.nsec3.links[i]
	owner := z.data[l.name : l.name+uint32(len(z.name)+1+dnssec.HashText)]
	w.note(z, owner, &l.set)
}

// nsec3Match notes the record whose owner is the hash of name.
func (w *work) nsec3Match(name wire.Name) bool {
	c := &w.z.nsec3
	i, ok := c.search(c.params.HashName(name))
	if ok {
		w.noteNSEC3(i)
	}
	return ok
}

// nsec3Cover notes the record that covers the hash of name.
func (w *work) nsec3Cover(name wire.Name) {
	c := &w.z.nsec3
	i, _ := c.search(c.params.HashName(name))
	if i == 0 { // the chain is a ring
		i = len(c.links)
	}
	w.noteNSEC3(i - 1)
}

// nsec3Encloser notes the closest encloser proof of name (RFC 5155 §7.2.1): the
// record that matches the closest encloser and the one that covers the next
// closer name. at is where the first candidate starts in name, and next where
// the name below it does, or -1. It returns where the encloser that can be
// proven starts: under opt-out, names above insecure delegations have no record.
func (w *work) nsec3Encloser(name wire.Name, at, next int) int {
	for !w.nsec3Match(name[at:]) {
		if name[at] == 0 {
			return at
		}
		next = at
		at += 1 + int(name[at])
	}
	if next >= 0 {
		w.nsec3Cover(name[next:])
	}
	return at
}

// nsec3CoverWild notes the record that covers the wildcard below encloser.
func (w *work) nsec3CoverWild(encloser wire.Name) {
	if len(encloser)+2 > wire.MaxName {
		return
	}
	var room [wire.MaxName]byte
	room[0], room[1] = 1, '*'
	w.nsec3Cover(room[:2+copy(room[2:], encloser)])
}
