package cache

import (
	"encoding/binary"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Answer is a response that was just received: it can be given to those who wait
// for it whether it may be kept or not. It is memory to be used again.
type Answer struct {
	Rcode wire.Rcode
	EDE   uint16 // extended error of the upstream (RFC 8914) plus one; 0 is none
	Flags uint16 // wire.FlagAD and wire.FlagTC as they came

	r      reading
	result Stored
}

// unlimited leaves TTLs as they come.
var unlimited = limits{max: maxTTL, negative: maxTTL}

// Read reads msg, the response to the question of k, with the TTLs that c allows;
// c may be nil. Nothing of msg is kept. It is Malformed, or what Keep will say where
// there is room. Of a response that says neither NOERROR nor NXDOMAIN only Rcode
// and EDE are there.
func (a *Answer) Read(c *Cache, k *Key, msg []byte) Stored {
	l := &unlimited
	if c != nil {
		l = &c.limits
	}
	a.Rcode, a.EDE, a.Flags = 0, 0, 0
	a.r.rcode = 0 // of an earlier use; not every response is read that far
	a.result = a.r.read(k, msg, l)
	if a.result == Malformed {
		return Malformed
	}
	a.Rcode, a.EDE = a.r.rcode, a.r.ede
	a.Flags = uint16(msg[2])<<8 | uint16(msg[3])
	a.Flags &= wire.FlagAD | wire.FlagTC
	if !a.r.made && (a.Rcode == wire.NoError || a.Rcode == wire.NXDomain) {
		a.result = Malformed
	}
	a.r.msg = nil
	return a.result
}

// Keep stores what Read has read. It is as Put.
func (c *Cache) Keep(k *Key, a *Answer, now time.Duration, upstream uint16) Stored {
	return c.store(k, &a.r, a.result, now, upstream)
}

// form is what clients that want DNSSEC records get, or the others.
func (a *Answer) form(dnssec bool) *form {
	if a.r.signed && !dnssec {
		return &a.r.plain
	}
	return &a.r.full
}

// Size is the octets that Replay writes at the most.
func (a *Answer) Size(dnssec bool) int { return len(a.form(dnssec).msg) }

// Message is the whole response in wire format, without OPT; valid until the next
// Read.
func (a *Answer) Message(dnssec bool) []byte { return a.form(dnssec).msg }

// Replay writes the response into b, as Get does. It is false where b was begun
// for another question.
func (a *Answer) Replay(b *wire.Builder, dnssec bool) bool {
	f := a.form(dnssec)
	return b.Replay(f.msg, f.ttlAt, 0, 0)
}

// silenceTTL is the life in seconds of a failure that no upstream has told, but its
// silence: as short as RFC 9520 §3.2 allows, since it may be over at once.
const silenceTTL = 1

// Fail notes that nobody could answer the question of k: what is there is kept and
// is not refreshed for a while, as with Failed. Where there is nothing, a SERVFAIL
// is stored for a moment, with the extended error ede (plus one; 0 is none). silent
// tells that no upstream said anything.
func (c *Cache) Fail(k *Key, now time.Duration, ede uint16, silent bool) {
	if c.fail(k, now) {
		return
	}
	var buf [wire.HeaderSize + wire.MaxName + 4]byte
	msg := binary.BigEndian.AppendUint16(buf[:2], wire.FlagQR|uint16(wire.ServFail))
	msg = append(msg, 0, 1, 0, 0, 0, 0, 0, 0)
	msg = append(msg, k.Name...)
	msg = binary.BigEndian.AppendUint16(msg, k.Type)
	msg = binary.BigEndian.AppendUint16(msg, k.Class)
	r := c.readings.get()
	defer c.readings.put(r)
	result := r.read(k, msg, &c.limits)
	r.ede = ede
	if silent {
		r.life = silenceTTL
	}
	c.store(k, r, result, now, 0)
}
