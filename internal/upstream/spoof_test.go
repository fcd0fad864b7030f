package upstream

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/upstream/egress"
	"github.com/waymark-dns/waymark/internal/wire"
)

// lie is responses that must not count, before the true one.
func lie(change func(m []byte) []byte) func(q query) [][]byte {
	return func(q query) [][]byte {
		return [][]byte{change(reply(q.msg, wire.NoError)), reply(q.msg, wire.NoError)}
	}
}

func TestLies(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m []byte) []byte
		want   Spoofs
	}{
		{"ID", func(m []byte) []byte { m[0] ^= 1; return m }, Spoofs{WrongID: 1}},
		{"name", func(m []byte) []byte { m[13] = 'x'; return m }, Spoofs{WrongQuestion: 1}},
		{"type", func(m []byte) []byte { m[questionEnd2(m)-3] = 28; return m }, Spoofs{WrongQuestion: 1}},
		{"class", func(m []byte) []byte { m[questionEnd2(m)-1] = 3; return m }, Spoofs{WrongQuestion: 1}},
		{"no question", func(m []byte) []byte { return []byte{m[0], m[1], 0x80, 0, 11: 0} }, Spoofs{WrongQuestion: 1}},
		{"SERVFAIL without question", func(m []byte) []byte { return []byte{m[0], m[1], 0x80, 2, 11: 0} }, Spoofs{WrongQuestion: 1}},
		{"two questions", func(m []byte) []byte { m[5] = 2; return m }, Spoofs{WrongQuestion: 1}},
		{"cut in the question", func(m []byte) []byte { return m[:20] }, Spoofs{WrongQuestion: 1}},
		{"a query", func(m []byte) []byte { m[2] &^= 0x80; return m }, Spoofs{Unexpected: 1}},
		{"another opcode", func(m []byte) []byte { m[2] |= wire.OpNotify << 3; return m }, Spoofs{Unexpected: 1}},
		{"short", func(m []byte) []byte { return m[:11] }, Spoofs{Unexpected: 1}},
		{"empty", func(m []byte) []byte { return nil }, Spoofs{Unexpected: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil, newFake(t, lie(c.change)))
			if w := r.good("www.example.", 0); w.Tries != 1 {
				t.Errorf("%d tries, want 1", w.Tries)
			}
			if got := r.status(0).Spoofs; got != c.want {
				t.Errorf("counted %+v, want %+v", got, c.want)
			}
		})
	}
}

// questionEnd2 is as questionEnd, of a response.
func questionEnd2(m []byte) int { return wire.UncompressedEnd(m, 12) + 4 }

// A server that answers in another case, or in types that look alike in another
// case: 65 is 'A', 97 is 'a'.
func TestQuestionCase(t *testing.T) {
	f := newFake(t, func(q query) [][]byte {
		m := reply(q.msg, wire.NXDomain)
		return [][]byte{append(append(m[:12:12], bytes.ToUpper(m[12:25])...), m[25:]...)}
	})
	r := newRig(t, nil, f)
	r.run("www.example.").answered(t, wire.NXDomain, 0)

	f.become(func(q query) [][]byte {
		m := reply(q.msg, wire.NXDomain)
		wrong := bytes.Clone(m)
		wrong[questionEnd2(m)-3] = 97
		return [][]byte{wrong, m}
	})
	w := newWaiter("www.example.")
	w.Query[questionEnd(w.Query)-3] = 65
	r.Start(&w.Exchange)
	w.wait(t)
	w.answered(t, wire.NXDomain, 0)
	if s := r.status(0); s.Spoofs.WrongQuestion != 1 {
		t.Errorf("%+v", s)
	}
}

func TestMixCase(t *testing.T) {
	const name = "a-rather-long-name-with-more-letters-than-one-word-has-bits.under.another-long-label.example."
	f := newFake(t, func(q query) [][]byte {
		wrong := reply(q.msg, wire.NoError)
		copy(wrong[12:], bytes.ToLower(wrong[12:questionEnd2(wrong)-4]))
		return [][]byte{wrong, reply(q.msg, wire.NoError)}
	})
	r := newRig(t, func(c *Config) { c.MixCase = true }, f)
	seen := map[string]bool{}
	for range 20 {
		r.good(name, 0)
		q := f.next(t)
		seen[string(q.msg[12:questionEnd(q.msg)-4])] = true
		if got := q.msg[questionEnd(q.msg)-4:]; !bytes.Equal(got[:4], []byte{0, 1, 0, 1}) {
			t.Fatalf("type and class became %x", got[:4])
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d ways to write the name in 20 queries", len(seen))
	}
	if s := r.status(0); s.Spoofs.WrongQuestion != 20 {
		t.Errorf("%+v: want 20 wrong questions", s)
	}
}

// A datagram from another port does not even arrive: the sockets are connected.
func TestWrongSource(t *testing.T) {
	f := newFake(t, silent)
	r := newRig(t, nil, f)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	q := f.next(t)
	other, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, _ = other.WriteToUDPAddrPort(reply(q.msg, wire.NXDomain), q.from)
	f.send(q, reply(q.msg, wire.NoError)) // behind it
	w.wait(t)
	w.answered(t, wire.NoError, 0)
	if got := r.status(0).Spoofs; got != (Spoofs{}) {
		t.Errorf("it arrived: %+v", got)
	}
}

// Ports and IDs over many queries (RFC 5452 §9).
func TestSpread(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Sockets = 128 }, f)
	ports, ids := map[uint16]int{}, map[uint16]bool{}
	var high int
	for range 2000 {
		r.good("www.example.", 0)
		q := f.next(t)
		ports[q.from.Port()]++
		ids[idOf(q.msg)] = true
	}
	for p := range ports {
		if p < egress.LowestPort {
			t.Errorf("port %d", p)
		}
		if p >= 32768 {
			high++
		}
	}
	if len(ports) < 100 {
		t.Errorf("%d ports, want 100 or more", len(ports))
	}
	if high < 20 || len(ports)-high < 20 {
		t.Errorf("%d of %d ports are in the upper half", high, len(ports))
	}
	if len(ids) < 1900 {
		t.Errorf("%d IDs in 2,000 queries", len(ids))
	}
}

func TestRotation(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Sockets = 1 }, f)
	ports := map[uint16]int{}
	last := uint16(0)
	run := func() (changed bool) {
		r.good("www.example.", 0)
		port := f.next(t).from.Port()
		ports[port]++
		changed = last != 0 && port != last
		last = port
		return changed
	}
	n := 0
	for !run() {
		n++
	}
	if n < minUses || n > maxUses {
		t.Errorf("%d queries from one port", n)
	}
	r.pass(minAge*time.Second - 10*time.Millisecond)
	if run() {
		t.Error("a socket was given up too early")
	}
	r.pass((maxAge - minAge) * time.Second)
	if !run() {
		t.Error("a socket was used for too long")
	}
	if s := r.status(0); s.Sockets != 1 {
		t.Errorf("%d sockets are open, want 1", s.Sockets)
	}
}

// What comes after an exchange has ended is nobody's.
func TestLateAnswer(t *testing.T) {
	slow, f := newFake(t, silent), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select = Order }, slow, f)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	q := slow.next(t)
	r.pass(150 * time.Millisecond)
	w.wait(t)
	w.answered(t, wire.NoError, 1)

	w.Query, w.Bare = ask("other.example.")
	r.Start(&w.Exchange)
	again := slow.next(t)
	slow.send(q, reply(q.msg, wire.NoError))
	r.until("the late answer", func() bool { return r.status(0).Answers == 1 })
	w.flying(t)
	slow.send(again, reply(again.msg, wire.NoError))
	w.wait(t)
	w.answered(t, wire.NoError, 0)
}
