package cmd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/miekg/dns"
)

// startAnswerer serves UDP and TCP on one loopback port and returns its address.
func startAnswerer(t *testing.T) string {
	t.Helper()
	pc, l := bothSockets(t)
	for _, s := range []*dns.Server{{PacketConn: pc}, {Listener: l}} {
		s.Handler = dns.HandlerFunc(answerByName)
		s.MsgAcceptFunc = func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }
		up, down := make(chan struct{}), make(chan error, 1)
		s.NotifyStartedFunc = func() { close(up) }
		serveLoop := func() { down <- s.ActivateAndServe() }
		go serveLoop()
		<-up
		t.Cleanup(func() {
			if err := errors.Join(s.Shutdown(), <-down); err != nil {
				t.Errorf("stopping the answerer: %v", err)
			}
		})
	}
	return pc.LocalAddr().String()
}

// bothSockets finds a port that is free for UDP and TCP.
func bothSockets(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 20 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l, err := net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			return pc, l
		}
		pc.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// answerByName does what the first label of the name says.
func answerByName(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative = true
	name := q.Question[0].Name
	switch label, _, _ := strings.Cut(strings.ToLower(name), "."); label {
	case "www":
		m.Answer = records(name+" 300 IN A 192.0.2.80", name+" 300 IN A 192.0.2.81")
		m.Extra = records("a.much.longer.name.example.org. 3600 IN AAAA 2001:db8::1")
	case "nothing":
		m.Rcode = dns.RcodeNameError
		m.Ns = records("example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 5")
	case "big":
		if _, tcp := w.RemoteAddr().(*net.TCPAddr); !tcp {
			m.Truncated = true
			break
		}
		m.Answer = records(name + ` 60 IN TXT "the whole of it"`)
	case "silent":
		return
	case "wrong":
		writeStray(w, m)
		m.Answer = records(name + " 60 IN A 192.0.2.1")
	case "badvers":
		m.SetEdns0(1232, false)
		m.Rcode = dns.RcodeBadVers
	case "garbage":
		_, _ = w.Write([]byte{byte(q.Id >> 8), byte(q.Id), 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0, 63})
		return
	}
	if opt := q.IsEdns0(); opt != nil && m.IsEdns0() == nil {
		addOptions(m, opt)
	}
	_ = w.WriteMsg(m)
}

// writeStray sends responses to other queries, which a client passes over.
func writeStray(w dns.ResponseWriter, m *dns.Msg) {
	stray := m.Copy()
	stray.Id++
	stray.Rcode = dns.RcodeRefused
	_ = w.WriteMsg(stray)
	stray.Id--
	stray.Question[0].Name = "other.example.org."
	_ = w.WriteMsg(stray)
}

func addOptions(m *dns.Msg, asked *dns.OPT) {
	m.SetEdns0(1232, asked.Do())
	opt := m.IsEdns0()
	for _, o := range asked.Option {
		switch o := o.(type) {
		case *dns.EDNS0_NSID:
			opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: hex.EncodeToString([]byte("example-1"))})
		case *dns.EDNS0_SUBNET:
			opt.Option = append(opt.Option, o)
		}
	}
	opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeProhibited, ExtraText: "not you"})
}

func records(lines ...string) []dns.RR {
	var out []dns.RR
	for _, line := range lines {
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		out = append(out, rr)
	}
	return out
}

// runQuery parses a command line as the program does and runs it.
func runQuery(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var program struct {
		Query QueryCmd `cmd:""`
	}
	parser, err := kong.New(&program, kong.Exit(func(int) { t.Error("kong wants to exit") }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"query"}, args...)); err != nil {
		t.Fatalf("kong refuses %q: %v", args, err)
	}
	var out bytes.Buffer
	err = program.Query.Run(&out)
	return out.String(), err
}

func TestQueryText(t *testing.T) {
	at := "@" + startAnswerer(t)
	for _, c := range []struct {
		name string
		args []string
		want []string // each is in the output
		not  []string
	}{
		{"records stand in columns", []string{at, "www.example.org", "A", "+noedns", "+id=4711"}, []string{
			"; NOERROR    QUERY   id 4711   flags aa rd\n",
			"\n;www.example.org.  IN  A\n",
			"\n; answer: 2 records\n",
			"www.example.org.                  300  IN  A     192.0.2.80\n",
			"a.much.longer.name.example.org.  3600  IN  AAAA  2001:db8::1\n",
			" from " + at[1:] + " over UDP\n",
		}, []string{"EDNS", "authority"}},
		{"options of the response", []string{at, "www.example.org", "+dnssec", "+nsid", "+subnet=192.0.2.7/24"}, []string{
			"; EDNS       version 0   size 1232   do\n", `; NSID       6578616d706c652d31 ("example-1")`,
			"; SUBNET     192.0.2.0/24/0\n", `; EDE        18 Prohibited: "not you"`,
		}, nil},
		{"NXDOMAIN is an answer", []string{at, "nothing.example.org"}, []string{"; NXDOMAIN ", "; authority: 1 record\n", "SOA"}, nil},
		{"over TCP at once", []string{"+tcp", "www.example.org", at}, []string{" over TCP\n"}, []string{"truncated"}},
		{"TC: again over TCP (RFC 7766 §5)", []string{at, "big.example.org", "TXT"}, []string{
			"; truncated over UDP, asked again over TCP\n", `"the whole of it"`, " over TCP\n"}, nil},
		{"TC kept", []string{at, "big.example.org", "TXT", "+ignore"}, []string{"flags aa tc rd", " over UDP\n"}, nil},
		{"strays are passed over", []string{at, "wrong.example.org"}, []string{"; NOERROR ", "192.0.2.1\n"}, []string{"REFUSED"}},
		{"BADVERS (RFC 6891 §6.1.3)", []string{at, "badvers.example.org", "+ednsversion=1"}, []string{"; BADVERS "}, nil},
		{"RDATA only", []string{"+short", at, "www.example.org"}, []string{"192.0.2.80\n192.0.2.81\n"}, []string{";", "IN"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := runQuery(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
			for _, not := range c.not {
				if strings.Contains(out, not) {
					t.Errorf("output holds %q:\n%s", not, out)
				}
			}
		})
	}
}

func TestQueryJSON(t *testing.T) {
	at := "@" + startAnswerer(t)
	for _, args := range [][]string{{"--json", at, "www.example.org"}, {at, "www.example.org", "--json"}, {at, "+json", "www.example.org"}} {
		out, err := runQuery(t, append(args, "+nsid")...)
		if err != nil {
			t.Fatal(err)
		}
		var got jsonReply
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if got.Rcode != "NOERROR" || !reflect.DeepEqual(got.Flags, []string{"aa", "rd"}) || got.Transport != "udp" || got.Server != at[1:] {
			t.Errorf("header: %+v", got)
		}
		if len(got.Answer) != 2 || *got.Answer[1].Data != "192.0.2.81" || *got.Answer[1].TTL != 300 || got.Answer[1].Type != "A" {
			t.Errorf("answer: %+v", got.Answer)
		}
		if got.Authority == nil || len(got.Extra) != 1 || got.EDNS == nil || got.EDNS.Options[0].Name != "NSID" {
			t.Errorf("other sections: %s", out)
		}
	}
}

// Nothing answers, or nothing that can be read: exit code 9, as dig's.
func TestQueryNoAnswer(t *testing.T) {
	at := "@" + startAnswerer(t)
	for _, c := range []struct{ name, arg, want string }{
		{"time-out", "silent.example.org", "timed out"},
		{"unreadable", "garbage.example.org", "reading a response of 13 octets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := runQuery(t, at, c.arg, "+time=0.05", "+tries=2")
			if ExitCode(err) != exitNoAnswer || out != "" {
				t.Fatalf("code %d, output %q, error %v", ExitCode(err), out, err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), at[1:]) {
				t.Errorf("error %q lacks %q or the server", err, c.want)
			}
		})
	}
}

func TestParseLookup(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // server port name type class
	}{
		{"@192.0.2.1 www.example.org", "192.0.2.1 53 www.example.org. A IN"},
		{"AAAA www.example.org @192.0.2.1:5353", "192.0.2.1 5353 www.example.org. AAAA IN"},
		{"@[2001:db8::1]:5353 example.org. mx", "2001:db8::1 5353 example.org. MX IN"},
		{"@2001:db8::1 example.org", "2001:db8::1 53 example.org. A IN"},
		{"@[2001:db8::1] -p 54 example.org", "2001:db8::1 54 example.org. A IN"},
		{"@ns1.example.org:54 example.org type65", "ns1.example.org 54 example.org. HTTPS IN"},
		{"@udp://127.0.0.1:5353 example.org TYPE65280 CLASS7", "127.0.0.1 5353 example.org. TYPE65280 CLASS7"},
		{"@::1 ch txt version.bind", "::1 53 version.bind. TXT CH"},
		{"@::1 mx mx.", "::1 53 mx. MX IN"},
		{"@::1 -q mx -t txt -c ch", "::1 53 mx. TXT CH"},
		{"@::1 mx txt", "::1 53 txt. MX IN"},
		{"@::1", "::1 53 . NS IN"},
		{"@::1 -x 192.0.2.80", "::1 53 80.2.0.192.in-addr.arpa. PTR IN"},
		{"-x2001:db8::80 @::1", "::1 53 0.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. PTR IN"},
	} {
		l, err := parseLookup(strings.Fields(c.args))
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		got := fmt.Sprint(l.server, " ", l.port, " ", l.name, " ", typeName(l.rtype), " ", className(l.class))
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.args, got, c.want)
		}
	}
}

func TestParseLookupOptions(t *testing.T) {
	l, err := parseLookup(strings.Fields("@::1 x.example +dnssec +vc +norec +ad +cdflag +bufsize=512 +time=1.5 +tries=7 +qid=9 +subnet=2001:db8::/32 +opcode=notify +ednsversion=3 +nsid +short"))
	if err != nil {
		t.Fatal(err)
	}
	want := lookup{
		server: "::1", port: "53", name: "x.example.", rtype: dns.TypeA, class: dns.ClassINET,
		head: lookupHeader{ad: true, cd: true, id: 9, idGiven: true, opcode: dns.OpcodeNotify},
		edns: lookupEDNS{on: true, version: 3, size: 512, do: true, nsid: true, subnet: netip.MustParsePrefix("2001:db8::/32")},
		way:  lookupWay{tcp: true, timeout: 1500 * time.Millisecond, tries: 7},
		out:  lookupOutput{short: true},
	}
	if *l != want {
		t.Errorf("got  %+v\nwant %+v", *l, want)
	}
}

func TestParseLookupWrong(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "nothing to ask"},
		{"@::1 example.org +dnsec", "did you mean +dnssec?"},
		{"@::1 example.org +norecurze", "did you mean +norecurse?"},
		{"@::1 example.org +xyzzyxyzzy", "--help lists them"},
		{"@::1 example.org +e", "unknown option +e"},
		{"@::1 example.org +tcp=1", "+tcp takes no value"},
		{"@::1 example.org +bufsize", "write +bufsize=OCTETS|needs a value: +bufsize=OCTETS"},
		{"@::1 example.org +nobufsize", "is no switch"},
		{"@::1 example.org +bufsize=70000", `"70000" is no number from 0 to 65535`},
		{"@::1 example.org +time=soon", "seconds"},
		{"@::1 example.org +tries=0", "at least once"},
		{"@::1 example.org +subnet=here", "no address"},
		{"@::1 example.org A www", "the name is example.org. already"},
		{"@::1 a..b", "no domain name"},
		{"@::1 -x example.org", "no IP address"},
		{"@::1 -z", "unknown flag -z"},
		{"@::1 -x", "a value must follow"},
		{"@::1 -t nix", "unknown type"},
		{"@192.0.2.1:many example.org", "port"},
		{"@ example.org", "no host"},
	} {
		_, err := parseLookup(strings.Fields(c.args))
		if err == nil {
			t.Errorf("%q is taken", c.args)
			continue
		}
		found := false
		for _, want := range strings.Split(c.want, "|") {
			found = found || strings.Contains(err.Error(), want)
		}
		if !found || ExitCode(err) != 1 {
			t.Errorf("%q: code %d, error %q lacks %q", c.args, ExitCode(err), err, c.want)
		}
	}
}

// Every option is found by its own name, and kong leaves all of them alone.
func TestQueryOptionsTable(t *testing.T) {
	help := (&QueryCmd{}).Help()
	for i := range queryOptions {
		o := &queryOptions[i]
		if got := optionNamed(o.name); got != o {
			t.Errorf("+%s finds %v", o.name, got)
		}
		if (o.flip == nil) == (o.set == nil) || (o.set == nil) != (o.value == "") {
			t.Errorf("+%s: exactly one of flip and set, a value's name with set", o.name)
		}
		if !strings.Contains(help, o.form()) {
			t.Errorf("the help lacks %s", o.form())
		}
	}
	for other, name := range optionByOtherName {
		if o := optionNamed(other); o == nil || o.name != name {
			t.Errorf("+%s is not +%s", other, name)
		}
	}
}

func TestQueryThroughKong(t *testing.T) {
	at := "@" + startAnswerer(t)
	for _, args := range [][]string{
		{"-x", "192.0.2.80", at}, {at, "-x", "192.0.2.80"}, {"-x192.0.2.80", at}, {"+dnssec", at, "-t", "A", "www.example.org"}, {"-p", "53", at, "www.example.org"},
	} {
		if _, err := runQuery(t, args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func FuzzParseLookup(f *testing.F) {
	f.Add("@127.0.0.1:5353 www.example.org A +dnssec +tcp")
	f.Add("-x 2001:db8::1 @[::1]:53 +subnet=0 +time=1 CLASS3 TYPE7")
	f.Fuzz(func(t *testing.T, line string) {
		l, err := parseLookup(strings.Fields(line))
		if err != nil {
			return
		}
		if _, err := l.message().Pack(); err != nil {
			t.Errorf("%q is taken, and its query cannot be packed: %v", line, err)
		}
	})
}

// A response may write the name of its question with other escapes than the
// command line did: bytes count, not text.
func TestAnswersByName(t *testing.T) {
	for _, c := range []struct {
		asked, answered string
		want            bool
	}{
		{`a\046dot.example.`, `a\.dot.example.`, true},
		{`\119ww.example.`, `WWW.example.`, true},
		{`x@y.example.`, `x\@y.example.`, true},
		{"bücher.example.", `b\195\188cher.example.`, true},
		{`a\.dot.example.`, `a.dot.example.`, false},
		{`a.example.`, `b.example.`, false},
	} {
		q, r := new(dns.Msg), new(dns.Msg)
		q.SetQuestion(c.asked, dns.TypeA)
		r.SetReply(q)
		r.Question[0].Name = c.answered
		if got := answers(r, q); got != c.want {
			t.Errorf("asked %s, answered %s: taken %v", c.asked, c.answered, got)
		}
	}
}
