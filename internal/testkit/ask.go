package testkit

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Question is one query to put. The zero value of what is not needed is fine.
type Question struct {
	Name  string
	Type  uint16
	Class uint16 // 0 is IN
	DO    bool
	Size  uint16 // of the OPT record; 0 with DO is 1232, without DO there is no OPT record
	TCP   bool
}

// Message is the query in wire format, with the ID 1.
func (q Question) Message(t testing.TB) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.Id = 1
	class := q.Class
	if class == 0 {
		class = dns.ClassINET
	}
	m.Question = []dns.Question{{Name: q.Name, Qtype: q.Type, Qclass: class}}
	if size := q.Size; q.DO || size != 0 {
		if size == 0 {
			size = 1232
		}
		m.SetEdns0(size, q.DO)
	}
	msg, err := m.Pack()
	if err != nil {
		t.Fatalf("packing the query %s %s: %v", q.Name, dns.TypeToString[q.Type], err)
	}
	return msg
}

// Asker puts queries to a function, as a listener would: one Request and one
// buffer, used again. It serves one goroutine.
type Asker struct {
	Req    serve.Request
	answer func(*serve.Request) (wire.Rcode, bool)
	out    []byte
}

// The two kinds of transport.
var (
	udp = serve.Peer{Proto: serve.UDP}
	tcp = serve.Peer{Proto: serve.TCP}
)

// NewAsker makes an Asker. answer says false where it wrote nothing; the
// response is REFUSED then.
func NewAsker(answer func(*serve.Request) (wire.Rcode, bool)) *Asker {
	return &Asker{answer: answer, out: make([]byte, wire.MaxMessage)}
}

// UDPSize is the largest response over UDP that an Asker lets through.
const UDPSize = 4096

// Exchange answers a query in wire format. The response stands in a buffer that
// the next call uses again. It allocates nothing where answer does not. It is
// nil where the query is not fit to be answered.
func (a *Asker) Exchange(msg []byte, stream bool) []byte {
	a.Req.Peer = &udp
	if stream {
		a.Req.Peer = &tcp
	}
	if a.Req.Receive(msg, a.out) != serve.Query {
		return nil
	}
	rcode, ok := a.answer(&a.Req)
	if !ok {
		rcode = wire.Refused
	}
	a.Req.Finish(rcode)
	return a.Req.Fit(UDPSize)
}

// Ask puts q and unpacks the response, which has to be well formed.
func (a *Asker) Ask(t testing.TB, q Question) *dns.Msg {
	t.Helper()
	raw := a.Exchange(q.Message(t), q.TCP)
	if raw == nil {
		t.Fatalf("%s %s: no response", q.Name, dns.TypeToString[q.Type])
	}
	var cursor wire.Response
	var rec wire.Record
	cursor.Read(raw)
	for cursor.Next(&rec) {
	}
	m := new(dns.Msg)
	if err := m.Unpack(raw); err != nil || !cursor.Whole() {
		t.Fatalf("%s %s: response is malformed: %v\n%x", q.Name, dns.TypeToString[q.Type], err, raw)
	}
	return m
}
