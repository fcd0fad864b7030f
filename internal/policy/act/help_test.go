package act

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Ways to ask.

type how func(*dns.Msg)

func edns(m *dns.Msg) {
	if m.IsEdns0() == nil {
		m.SetEdns0(1232, false)
	}
}

func wantsDO(m *dns.Msg) { edns(m); m.IsEdns0().SetDo() }
func wantsAD(m *dns.Msg) { m.AuthenticatedData = true }
func wantsCD(m *dns.Msg) { m.CheckingDisabled = true }
func noRD(m *dns.Msg)    { m.RecursionDesired = false }

// option adds an EDNS option.
func option(code uint16, data string) how {
	return func(m *dns.Msg) {
		edns(m)
		o := m.IsEdns0()
		o.Option = append(o.Option, &dns.EDNS0_LOCAL{Code: code, Data: []byte(data)})
	}
}

// subnet adds an ECS option for a prefix.
func subnet(prefix string) how {
	return option(wire.OptECS, string(appendSubnet(nil, netip.MustParsePrefix(prefix))[4:]))
}

// query is a query for "name" and a type, with RD.
func query(t testing.TB, name string, typ uint16, with ...how) []byte {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, typ)
	for _, f := range with {
		f(m)
	}
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// Clients.

var (
	overUDP = &serve.Peer{Listener: "udp://192.0.2.53:53"}
	overTCP = &serve.Peer{Listener: "tcp://192.0.2.53:53", Proto: serve.TCP}
)

// received is a request as it comes from a listener.
func received(t testing.TB, client string, peer *serve.Peer, msg []byte) *serve.Request {
	t.Helper()
	r := &serve.Request{Peer: peer, Client: netip.AddrPortFrom(netip.MustParseAddr(client), 4096)}
	if got := r.Receive(msg, make([]byte, 1232)); got != serve.Query {
		t.Fatalf("received as %d", got)
	}
	return r
}

// fitted is the response as the client gets it.
func fitted(t testing.TB, r *serve.Request) *dns.Msg {
	t.Helper()
	if r.Out == nil {
		t.Fatal("there is no response")
	}
	m := new(dns.Msg)
	if err := m.Unpack(r.Fit(1232)); err != nil {
		t.Fatalf("unpacking the response %x: %v", r.Out, err)
	}
	return m
}

// errorsOf is the extended errors of a response.
func errorsOf(m *dns.Msg) (codes []int, text string) {
	o := m.IsEdns0()
	if o == nil {
		return nil, ""
	}
	for _, e := range o.Option {
		if e, ok := e.(*dns.EDNS0_EDE); ok {
			codes, text = append(codes, int(e.InfoCode)), e.ExtraText
		}
	}
	return codes, text
}

// checkError checks that a response has that extended error, and no other.
func checkError(t testing.TB, m *dns.Msg, want int) {
	t.Helper()
	if got, text := errorsOf(m); len(got) != 1 || got[0] != want {
		t.Errorf("extended errors %d (%q), want %d", got, text, want)
	}
}

// doing is a policy.Step that is a function.
type doing func(*serve.Request) policy.Next

func (s doing) Do(r *serve.Request) policy.Next { return s(r) }

// program is a set of one program.
func program(rules ...policy.Rule) *policy.Set {
	return &policy.Set{Programs: []policy.Program{{Rules: rules}}}
}

func names(t testing.TB, texts ...string) []wire.Name {
	t.Helper()
	var all []wire.Name
	for _, text := range texts {
		n, err := wire.ParseName(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n.Fold())
	}
	return all
}

// allocates checks that f does not.
func allocates(t *testing.T, f func()) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	if n := testing.AllocsPerRun(200, f); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
