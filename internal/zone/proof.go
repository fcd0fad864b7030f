package zone

import "github.com/waymark-dns/waymark/internal/wire"

// proof is one NSEC or NSEC3 RRset that the authority section will hold.
type proof struct {
	z     *Zone
	owner wire.Name
	set   *set
}

// note enters a proof once: one NSEC record often proves two things.
func (w *work) note(z *Zone, owner wire.Name, s *set) {
	if s == nil || w.proven == len(w.proofs) {
		return
	}
	for i := range w.proofs[:w.proven] {
		if w.proofs[i].set == s {
			return
		}
	}
	w.proofs[w.proven] = proof{z, owner, s}
	w.proven++
}

// prove adds the proofs to the authority section.
func (w *work) prove() {
	z := w.z
	for i := range w.proofs[:w.proven] {
		p := &w.proofs[i]
		w.z = p.z
		w.add(wire.Authority, p.owner, p.set)
	}
	w.z = z
}

// What has to be proven is the same for NSEC (RFC 4035 §3.1.3) and NSEC3
// (RFC 5155 §7.2); how it is done differs. at is the label of c's name where its
// closest encloser starts.

// proveNoName: the name does not exist and no wildcard covers it.
func (w *work) proveNoName(c *cursor, at int) {
	off := c.at(at)
	switch {
	case !w.do:
	case w.z.nsec3.in():
		off = w.nsec3Encloser(c.name, off, c.at(at-1))
		w.nsec3CoverWild(c.name[off:])
	case len(w.z.chain) > 0:
		w.nsecCover(c.name)
		w.nsecCoverWild(c.name[off:])
	}
}

// proveNoData: the name exists, the type does not.
func (w *work) proveNoData(c *cursor) {
	switch {
	case !w.do:
	case w.z.nsec3.in():
		// Mostly the record of the name. Under opt-out there is none for an
		// insecure delegation, nor for what exists only above one (§7.2.4).
		w.nsec3Encloser(c.name, 0, -1)
	case len(w.z.chain) > 0:
		w.nsecCover(c.name) // its own, or that before an empty non-terminal
	}
}

// proveExpansion: the name itself does not exist, so that a wildcard applies.
func (w *work) proveExpansion(c *cursor, at int) {
	switch {
	case !w.do:
	case w.z.nsec3.in():
		w.nsec3Cover(c.name[c.at(at-1):])
	case len(w.z.chain) > 0:
		w.nsecCover(c.name)
	}
}

// proveWildNoData: the wildcard that applies does not have the type. The name's
// own absence is proven already.
func (w *work) proveWildNoData(c *cursor, wild uint32, at int) {
	switch {
	case !w.do:
	case w.z.nsec3.in():
		w.nsec3Encloser(c.name, c.at(at), c.at(at-1))
		w.nsec3Match(w.z.owner(wild))
	case len(w.z.chain) > 0:
		w.nsecCover(w.z.owner(wild))
	}
}

// proveInsecure: a delegation has no DS record (RFC 5155 §7.2.7).
func (w *work) proveInsecure(n uint32) {
	switch {
	case w.z.nsec3.in():
		w.nsec3Encloser(w.z.owner(n), 0, -1)
	case len(w.z.chain) > 0:
		w.nsecCover(w.z.owner(n))
	}
}
