package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

const second = time.Second

// open makes a cache that the test closes.
func open(t testing.TB, c Config) *Cache {
	t.Helper()
	if c.Size == 0 {
		c.Size = MinSize
	}
	cache, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return cache
}

// asker puts questions to a cache as a client would.
type asker struct {
	t     testing.TB
	cache *Cache
	key   Key
	query wire.Query
	reply wire.Builder
	buf   []byte
}

func newAsker(t testing.TB, c *Cache) *asker {
	return &asker{t: t, cache: c, buf: make([]byte, wire.MaxMessage)}
}

// ask makes "name type" the question; what else there is of the key is set by
// with.
func (a *asker) ask(question string, with ...func(*Key)) *Key {
	a.t.Helper()
	name, typ, _ := strings.Cut(question, " ")
	m := new(dns.Msg)
	m.SetQuestion(name, dns.StringToType[typ])
	msg, err := m.Pack()
	if err != nil {
		a.t.Fatalf("packing the query %s: %v", question, err)
	}
	return a.raw(msg, with...)
}

// raw makes the question of a message the question.
func (a *asker) raw(msg []byte, with ...func(*Key)) *Key {
	a.t.Helper()
	msg[2] &^= 0x80
	if err := a.query.Parse(msg); err != nil {
		a.t.Fatalf("reading the query: %v", err)
	}
	a.key = Key{Name: a.query.Name, Hash: a.query.Hash, Type: a.query.Type, Class: a.query.Class}
	for _, f := range with {
		f(&a.key)
	}
	return &a.key
}

// get looks the last question up and unpacks what was replayed.
func (a *asker) get(now time.Duration, dnssec bool) (Hit, *dns.Msg) {
	a.t.Helper()
	a.reply.Begin(&a.query, a.buf)
	hit := a.cache.Get(&a.key, now, &a.reply, dnssec)
	return hit, a.unpack(hit)
}

func (a *asker) stale(now time.Duration) (Hit, *dns.Msg) {
	a.t.Helper()
	a.reply.Begin(&a.query, a.buf)
	hit := a.cache.Stale(&a.key, now, &a.reply, true)
	return hit, a.unpack(hit)
}

func (a *asker) unpack(hit Hit) *dns.Msg {
	a.t.Helper()
	msg := a.reply.End(hit.Rcode)
	if hit.Verdict == Miss || hit.Verdict == Expired {
		if len(msg) > wire.HeaderSize+len(a.query.Name)+4 {
			a.t.Errorf("verdict %d, but something was replayed", hit.Verdict)
		}
		return nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(msg); err != nil {
		a.t.Fatalf("unpacking what was replayed, %x: %v", msg, err)
	}
	return m
}

// response packs a response to "name type" with these records; a line that is
// ";; authority" or ";; additional" starts a section.
func response(t testing.TB, question string, rcode int, lines ...string) []byte {
	t.Helper()
	m := message(t, question, rcode, lines...)
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func message(t testing.TB, question string, rcode int, lines ...string) *dns.Msg {
	t.Helper()
	name, typ, _ := strings.Cut(question, " ")
	m := new(dns.Msg)
	m.SetQuestion(name, dns.StringToType[typ])
	m.Response, m.Rcode, m.Authoritative, m.RecursionAvailable = true, rcode, true, true
	m.Compress = true
	section := &m.Answer
	for _, l := range lines {
		switch l {
		case ";; authority":
			section = &m.Ns
			continue
		case ";; additional":
			section = &m.Extra
			continue
		}
		rr, err := dns.NewRR(l)
		if err != nil {
			t.Fatal(err)
		}
		*section = append(*section, rr)
	}
	return m
}

// lines is the records of a message as text, sections marked.
func lines(m *dns.Msg) string {
	var b strings.Builder
	for _, s := range []struct {
		head string
		rrs  []dns.RR
	}{{"", m.Answer}, {";; authority\n", m.Ns}, {";; additional\n", m.Extra}} {
		if len(s.rrs) > 0 {
			b.WriteString(s.head)
		}
		for _, rr := range s.rrs {
			fmt.Fprintln(&b, strings.ReplaceAll(rr.String(), "\t", " "))
		}
	}
	return b.String()
}

// put stores a response to the last question.
func (a *asker) put(msg []byte, now time.Duration) Stored {
	a.t.Helper()
	return a.cache.Put(&a.key, msg, now, 7)
}

// stores is put for a response that is to be kept.
func (a *asker) stores(msg []byte, now time.Duration) {
	a.t.Helper()
	if got := a.put(msg, now); got != Kept {
		a.t.Fatalf("Put says %d, want Kept", got)
	}
}
