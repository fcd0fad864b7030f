package qlog

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Limits of a table: whichever comes first makes it a segment.
const (
	maxRows    = 1 << 18
	maxPackage = 24 << 20 // octets of different values
)

// entry is a row of a table. What repeats is a number.
type entry struct {
	time                        int64 // microseconds since 1970
	name, client, answers, kind uint32
	latency                     uint32 // microseconds
	port, querySize, size       uint16
}

// table is the rows of a segment that is not closed yet.
type table struct {
	seed                    uint64
	rows                    []entry
	names, clients, answers dict
	subnets                 dict // only in keys of kinds
	kinds                   dict // keys are kindKeys; texts are not used
	templates               []Row
	scratch                 []entry
	last                    recent
}

// recent is what the record before had: queries of one client come together.
type recent struct {
	known                    bool
	client                   [16]byte
	kind                     kindKey
	clientNumber, kindNumber uint32
}

// kindKey is all of a row that has few different values.
type kindKey [3]uint64

func newTable() *table { return &table{seed: rand.Uint64()} }

// reset empties t and keeps its memory.
func (t *table) reset() {
	t.rows, t.templates, t.last = t.rows[:0], t.templates[:0], recent{}
	for _, d := range []*dict{&t.names, &t.clients, &t.answers, &t.subnets, &t.kinds} {
		d.reset()
	}
}

// field is a part of an entry.
type field uint8

// The fields. The first are numbers of texts.
const (
	client field = iota
	name
	answers
	kind
	port
	latency
	querySize
	size
	fieldCount
)

// dicts is the texts of the first fields.
func (t *table) dicts() [3]*dict {
	return [3]*dict{client: &t.clients, name: &t.names, answers: &t.answers}
}

// full tells whether t is to become a segment.
func (t *table) full() bool {
	return len(t.rows) >= maxRows || t.names.size()+t.clients.size()+t.answers.size()+t.subnets.size() > maxPackage
}

// scribe turns records into rows: what numbers of records mean, and what is not to
// be told of clients.
type scribe struct {
	names   Names
	privacy privacy
	epoch   int64 // microseconds since 1970 at the time 0 of records
}

// Names says what the numbers in requests stand for; a nil function says nothing. The
// functions are called by one goroutine.
type Names struct{ Rule, Upstream, Listener func(number uint16) string }

func textOf(f func(uint16) string, n uint16) string {
	if f == nil {
		return ""
	}
	return f(n)
}

// add adds a record.
func (t *table) add(rec *Record, s *scribe) {
	name, answers := t.question(rec)
	t.rows = append(t.rows, entry{
		time: s.epoch + int64(rec.At/time.Microsecond),
		name: name, client: t.client(rec, s), answers: answers, kind: t.kind(rec, s),
		latency: uint32(min(rec.Latency/time.Microsecond, 1<<32-1)),
		port:    rec.Port, querySize: rec.QuerySize, size: rec.Size,
	})
}

// question is the numbers of a name and of its answers. Mostly they are those of the
// last time: then the one slot has both.
func (t *table) question(rec *Record) (name, answers uint32) {
	name, at, ok := t.names.find(rec.Hash, rec.Name, true)
	if !ok {
		folded := rec.Name.Fold()
		t.names.put(rec.Hash, at, folded, true)
		t.names.texts.add([]byte(folded.String()))
	}
	s := &t.names.slots[at]
	if len(rec.Answers) > shortKey || len(rec.Answers) == 0 {
		return name, t.answer(rec)
	}
	key := short(rec.Answers)
	if s.lastKey != key || int(s.lastLength) != len(rec.Answers) {
		s.lastNumber, s.lastKey, s.lastLength = t.answer(rec), key, uint8(len(rec.Answers))
	}
	return name, s.lastNumber
}

func (t *table) client(rec *Record, s *scribe) uint32 {
	if t.last.known && rec.Client == t.last.client {
		return t.last.clientNumber
	}
	key := s.privacy.mask(rec.Client)
	hash := mix(t.seed, binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:]))
	n, slot, ok := t.clients.find(hash, key[:], false)
	if !ok {
		t.clients.put(hash, slot, key[:], false)
		t.clients.texts.end(s.privacy.appendClient(t.clients.texts.octets, key))
	}
	t.last.client, t.last.clientNumber = rec.Client, n
	return n
}

func (t *table) answer(rec *Record) uint32 {
	hash := hashOctets(t.seed^uint64(rec.families), rec.Answers)
	n, slot, ok := t.answers.find(hash, rec.Answers, false)
	if !ok {
		t.answers.put(hash, slot, rec.Answers, false)
		text := t.answers.texts.octets
		begin := len(text)
		rec.EachAnswer(func(a netip.Addr) {
			if len(text) > begin {
				text = append(text, ' ')
			}
			text = a.AppendTo(text)
		})
		t.answers.texts.end(text)
	}
	return n
}

func (t *table) kind(rec *Record, s *scribe) uint32 {
	key := rec.kind()
	if t.last.known && key == t.last.kind && len(rec.ECS) == 0 {
		return t.last.kindNumber
	}
	if len(rec.ECS) > 0 {
		hash := hashOctets(t.seed, rec.ECS)
		n, slot, ok := t.subnets.find(hash, rec.ECS, false)
		if !ok {
			t.subnets.put(hash, slot, rec.ECS, false)
		}
		key[2] |= uint64(n+1) << 32
	}
	hash := mix(t.seed, key[:]...)
	var octets [24]byte
	for i, w := range key {
		binary.LittleEndian.PutUint64(octets[8*i:], w)
	}
	n, slot, ok := t.kinds.find(hash, octets[:], false)
	if !ok {
		t.kinds.put(hash, slot, octets[:], false)
		t.templates = append(t.templates, s.template(rec))
	}
	if len(rec.ECS) == 0 {
		t.last.kind, t.last.kindNumber, t.last.known = key, n, true
	}
	return n
}

// template is the columns of few values.
func (s *scribe) template(rec *Record) (row Row) {
	what, where, how := rec.what, rec.where, rec.how
	row.Protocol, row.Listener = serve.Proto(how).String(), textOf(s.names.Listener, uint16(where>>32))
	row.Type, row.Class, row.Rcode = wire.TypeString(uint16(what)), classText(uint16(what>>16)), wire.Rcode(what>>32).String()
	row.Flags, row.Source = flagsText(uint16(what>>48), how>>16&1 != 0), serve.Source(how>>8).String()
	row.Rule, row.Upstream = textOf(s.names.Rule, uint16(where)), textOf(s.names.Upstream, uint16(where>>48))
	if ede := uint16(where >> 16); ede > 0 {
		row.EDE = strconv.Itoa(int(ede) - 1)
	}
	row.ECS = s.privacy.subnet(rec.ECS)
	return row
}

// flagNames is the flags of a header in the order in which they are told.
var flagNames = []struct {
	bit  uint16
	name string
}{{wire.FlagAA, "AA"}, {wire.FlagTC, "TC"}, {wire.FlagRD, "RD"}, {wire.FlagRA, "RA"}, {wire.FlagAD, "AD"}, {wire.FlagCD, "CD"}}

func flagsText(flags uint16, do bool) string {
	var set []string
	for _, f := range flagNames {
		if flags&f.bit != 0 {
			set = append(set, f.name)
		}
	}
	if do {
		set = append(set, "DO")
	}
	return strings.Join(set, " ")
}

func classText(class uint16) string {
	switch class {
	case wire.ClassIN:
		return "IN"
	case wire.ClassCH:
		return "CH"
	case wire.ClassANY:
		return "ANY"
	}
	return "CLASS" + strconv.Itoa(int(class))
}

// digest is a key for a text of any length.
func digest(text []byte) [32]byte { return sha256.Sum256(text) }

// append adds a row that somebody has as texts.
func (t *table) append(row *Row) {
	text := func(d *dict, s string) uint32 {
		key := digest([]byte(s))
		hash := binary.LittleEndian.Uint64(key[:])
		n, slot, ok := d.find(hash, key[:], false)
		if !ok {
			d.put(hash, slot, key[:], false)
			d.texts.add([]byte(s))
		}
		return n
	}
	kind := *row
	kind.Time, kind.Client, kind.ClientPort, kind.Name, kind.Answers = 0, "", 0, "", ""
	kind.Latency, kind.QuerySize, kind.Size = 0, 0, 0
	var key []byte
	for _, c := range kindColumns {
		key = append(append(key, *c.of(&kind)...), 0)
	}
	sum := digest(key)
	hash := binary.LittleEndian.Uint64(sum[:])
	n, slot, ok := t.kinds.find(hash, sum[:], false)
	if !ok {
		t.kinds.put(hash, slot, sum[:], false)
		t.templates = append(t.templates, kind)
	}
	t.rows = append(t.rows, entry{
		time: row.Time, name: text(&t.names, row.Name), client: text(&t.clients, row.Client), answers: text(&t.answers, row.Answers), kind: n,
		latency: row.Latency, port: row.ClientPort, querySize: row.QuerySize, size: row.Size,
	})
}

// row is a row for people.
func (t *table) row(i int) (row Row) {
	e := &t.rows[i]
	row = t.templates[e.kind]
	row.Time, row.Latency, row.ClientPort, row.QuerySize, row.Size = e.time, e.latency, e.port, e.querySize, e.size
	row.Name, row.Client = string(t.names.texts.at(e.name)), string(t.clients.texts.at(e.client))
	row.Answers = string(t.answers.texts.at(e.answers))
	return row
}

// sortFrom sorts the rows from the i-th on, which are a few runs in order: what came
// out of one ring after the other.
func (t *table) sortFrom(i int) {
	rows := t.rows[i:]
	for {
		first := run(rows)
		if first == len(rows) {
			return
		}
		out := t.scratch[:0]
		for rest := rows; len(rest) > 0; {
			a := run(rest)
			b := run(rest[a:])
			out = merge(out, rest[:a], rest[a:a+b])
			rest = rest[a+b:]
		}
		copy(rows, out)
		t.scratch = out
	}
}

// run is how many rows at the beginning are in order.
func run(rows []entry) int {
	for i := 1; i < len(rows); i++ {
		if rows[i].time < rows[i-1].time {
			return i
		}
	}
	return len(rows)
}

func merge(dst, a, b []entry) []entry {
	for len(a) > 0 && len(b) > 0 {
		if b[0].time < a[0].time {
			dst, b = append(dst, b[0]), b[1:]
		} else {
			dst, a = append(dst, a[0]), a[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// sort sorts all rows. Most are in order; those that are not (queries that waited
// for an upstream) are taken out, sorted, and put where they belong.
func (t *table) sort() {
	late := t.scratch[:0]
	kept := t.rows[:0]
	newest := int64(-1 << 63)
	for _, e := range t.rows {
		if e.time < newest {
			late = append(late, e)
			continue
		}
		newest = e.time
		kept = append(kept, e)
	}
	slices.SortStableFunc(late, func(a, b entry) int { return int(min(max(a.time-b.time, -1), 1)) })
	t.scratch = late
	all := t.rows[:len(kept)+len(late)]
	at := len(all)
	for len(late) > 0 { // from the end, where there is room
		at--
		if n := len(kept); n > 0 && kept[n-1].time > late[len(late)-1].time {
			all[at], kept = kept[n-1], kept[:n-1]
		} else {
			all[at], late = late[len(late)-1], late[:len(late)-1]
		}
	}
	t.rows = all
}
