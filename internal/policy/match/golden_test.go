package match

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// asked is a request at a matcher.
type asked struct {
	client     string // empty is none
	name       string // "www.example." where empty
	typ, class uint16 // A, IN
	rcode      int
	answer     string // records, one a line; "-" is a response without any, empty none
	authority  string // records
	marks      []uint32
	path, sni  string
}

// request is the request that a describes.
func (a asked) request(t testing.TB, marks *Marks) *serve.Request {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion("www.example.", dns.TypeA)
	q := &m.Question[0]
	if a.name != "" {
		q.Name = a.name
	}
	if a.typ != 0 {
		q.Qtype = a.typ
	}
	if a.class != 0 {
		q.Qclass = a.class
	}
	r := &serve.Request{Peer: &serve.Peer{Path: a.path, ServerName: a.sni}}
	if a.client != "" {
		r.Client = netip.AddrPortFrom(netip.MustParseAddr(a.client), 4096)
	}
	if got := r.Receive(packed(t, m), make([]byte, 4096)); got != serve.Query {
		t.Fatalf("received as %d", got)
	}
	for _, mark := range a.marks {
		n, err := marks.Number(mark)
		if err != nil {
			t.Fatal(err)
		}
		r.Policy.Mark(n)
	}
	if a.answer == "" {
		return r
	}
	m.Response, m.Compress = true, true
	m.Answer, m.Ns = records(t, a.answer), records(t, a.authority)
	if !r.Reply.AddMessage(packed(t, m)) {
		t.Fatal("the response is not sound")
	}
	r.Finish(wire.Rcode(a.rcode))
	return r
}

func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func records(t testing.TB, text string) (all []dns.RR) {
	t.Helper()
	if text == "-" || text == "" {
		return nil
	}
	for line := range strings.Lines(text) {
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

// world is what arguments may refer to: sets, and a folder of files.
func world(t testing.TB) (*Env, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"names":     "# names\nlisted.example # and all below\n\nfull:only.example\n",
		"addresses": "198.51.100.0/24 office # and more\n\n2001:db8:1::1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, err := LoadDomainSet([]string{"base.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, err := LoadDomainSet([]string{"keyword:track"}, nil, base)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := LoadIPSet([]string{"203.0.113.0/24"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Env{Objects: map[string]any{"names": names, "addresses": addresses}, Marks: &Marks{}}, dir
}

const (
	chain = "www.example. 60 IN CNAME a.cdn.example.\na.cdn.example. 60 IN A 192.0.2.1"
	ptr4  = "1.2.0.192.in-addr.arpa."
	ptr6  = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
)

var golden = []struct {
	matcher, args string
	r             asked
	want          bool
}{
	// qname: full, suffix by labels, keyword, regexp; letters folded.
	{"qname", "example", asked{}, true},
	{"qname", "domain:example", asked{name: "WWW.eXample."}, true},
	{"qname", "example", asked{name: "wwwexample."}, false},
	{"qname", "full:example", asked{}, false},
	{"qname", "full:WWW.Example.", asked{}, true},
	{"qname", "keyword:w.EX", asked{}, true},
	{"qname", "keyword:tracker", asked{}, false},
	{"qname", `regexp:^www\.`, asked{}, true},
	{"qname", `regexp:^example`, asked{}, false},
	{"qname", "other.example www.example", asked{}, true},
	{"qname", ".", asked{name: "anything."}, true},
	{"qname", "$names", asked{name: "a.tracker."}, true},
	{"qname", "$names", asked{name: "a.base.example."}, true}, // of the set in the set
	{"qname", "$names", asked{}, false},
	{"qname", "$names example", asked{}, true},
	{"qname", "&names", asked{name: "a.listed.example."}, true},
	{"qname", "&names", asked{name: "a.only.example."}, false},
	{"qname", "", asked{}, false},
	// cname: any CNAME in the answer.
	{"cname", "cdn.example", asked{answer: chain}, true},
	{"cname", "www.example", asked{answer: chain}, false},
	{"cname", "cdn.example", asked{answer: "a.cdn.example. 60 IN A 192.0.2.1"}, false},
	{"cname", "cdn.example", asked{answer: "-", authority: "www.example. 60 IN CNAME a.cdn.example."}, false},
	{"cname", "cdn.example", asked{}, false},
	// client_ip: no address is in no set; IPv4 in IPv6 is IPv4.
	{"client_ip", "192.0.2.0/24", asked{client: "192.0.2.1"}, true},
	{"client_ip", "192.0.2.7/24", asked{client: "192.0.2.1"}, true}, // host bits do not count
	{"client_ip", "192.0.2.1", asked{client: "::ffff:192.0.2.1"}, true},
	{"client_ip", "::ffff:192.0.2.0/120", asked{client: "192.0.2.1"}, true},
	{"client_ip", "192.0.2.2 2001:db8::/32", asked{client: "2001:db8::1"}, true},
	{"client_ip", "192.0.2.2", asked{client: "192.0.2.1"}, false},
	{"client_ip", "0.0.0.0/0 ::/0", asked{}, false},
	{"client_ip", "$addresses", asked{client: "203.0.113.9"}, true},
	{"client_ip", "&addresses", asked{client: "198.51.100.9"}, true},
	{"client_ip", "&addresses", asked{client: "2001:db8:1::1"}, true},
	{"client_ip", "&addresses $addresses", asked{client: "192.0.2.1"}, false},
	// resp_ip: any A or AAAA in the answer.
	{"resp_ip", "192.0.2.1", asked{answer: chain}, true},
	{"resp_ip", "192.0.2.2", asked{answer: chain}, false},
	{"resp_ip", "2001:db8::/32", asked{answer: "www.example. 60 IN AAAA 2001:db8::1"}, true},
	{"resp_ip", "192.0.2.1", asked{answer: "-", authority: "www.example. 60 IN A 192.0.2.1"}, false},
	{"resp_ip", "0.0.0.0/0", asked{}, false},
	// ptr_ip: the labels nearest to the suffix, of PTR questions alone.
	{"ptr_ip", "192.0.2.1", asked{name: ptr4, typ: dns.TypePTR}, true},
	{"ptr_ip", "192.0.2.1", asked{name: ptr4}, false},
	{"ptr_ip", "192.0.2.1", asked{name: "b._dns-sd._udp." + ptr4, typ: dns.TypePTR}, true},
	{"ptr_ip", "0.0.0.0/0", asked{name: "2.0.192.in-addr.arpa.", typ: dns.TypePTR}, false},
	{"ptr_ip", "0.0.0.0/0", asked{name: "256.2.0.192.in-addr.arpa.", typ: dns.TypePTR}, false},
	{"ptr_ip", "0.0.0.0/0", asked{name: "x.2.0.192.in-addr.arpa.", typ: dns.TypePTR}, false},
	{"ptr_ip", "2001:db8::1", asked{name: strings.ToUpper(ptr6), typ: dns.TypePTR}, true},
	{"ptr_ip", "2001:db8::1", asked{name: "lb." + ptr6, typ: dns.TypePTR}, true},
	{"ptr_ip", "::/0", asked{name: ptr6[2:], typ: dns.TypePTR}, false},
	{"ptr_ip", "::/0", asked{name: "g" + ptr6[1:], typ: dns.TypePTR}, false},
	{"ptr_ip", "::/0 0.0.0.0/0", asked{typ: dns.TypePTR}, false},
	{"ptr_ip", "::/0 0.0.0.0/0", asked{name: ".", typ: dns.TypePTR}, false},
	// Numbers.
	{"qtype", "1", asked{}, true},
	{"qtype", "28 1", asked{}, true},
	{"qtype", "28", asked{}, false},
	{"qtype", "257", asked{}, false}, // not 1 modulo 256
	{"qclass", "1", asked{}, true},
	{"qclass", "3", asked{}, false},
	{"qclass", "1 3", asked{class: dns.ClassCHAOS}, true},
	{"rcode", "0", asked{answer: "-"}, true},
	{"rcode", "2 3", asked{answer: "-", rcode: 3}, true},
	{"rcode", "0", asked{answer: "-", rcode: 3}, false},
	{"rcode", "23", asked{answer: "-", rcode: 23}, true}, // RFC 6891 §6.1.3
	{"rcode", "7", asked{answer: "-", rcode: 23}, false},
	{"rcode", "0", asked{}, false},
	// The response.
	{"has_resp", "", asked{}, false},
	{"has_resp", "", asked{answer: "-", rcode: 2}, true},
	{"has_wanted_ans", "", asked{}, false},
	{"has_wanted_ans", "", asked{answer: "-"}, false},
	{"has_wanted_ans", "", asked{answer: chain}, true},
	{"has_wanted_ans", "", asked{answer: chain, typ: dns.TypeAAAA}, false},
	{"has_wanted_ans", "", asked{answer: chain, class: dns.ClassCHAOS}, false},
	{"has_wanted_ans", "", asked{answer: "-", authority: "www.example. 60 IN A 192.0.2.1"}, false},
	// Marks: any of them.
	{"mark", "7", asked{}, false},
	{"mark", "7", asked{marks: []uint32{7}}, true},
	{"mark", "7 4294967295", asked{marks: []uint32{4294967295}}, true},
	{"mark", "7", asked{marks: []uint32{8, 263}}, false},
	// The environment, as it is when the configuration is read.
	{"env", "WAYMARK_SET", asked{}, true},
	{"env", "WAYMARK_SET yes", asked{}, true},
	{"env", "WAYMARK_SET no", asked{}, false},
	{"env", "WAYMARK_EMPTY", asked{}, true},
	{"env", "WAYMARK_UNSET", asked{}, false},
	{"env", "yes WAYMARK_SET", asked{}, false},
	{"random", "1", asked{}, true},
	{"random", "0", asked{}, false},
	// string_exp.
	{"string_exp", "url_path zl", asked{}, true},
	{"string_exp", "url_path zl", asked{path: "/dns-query"}, false},
	{"string_exp", "url_path eq /a /dns-query", asked{path: "/dns-query"}, true},
	{"string_exp", "url_path eq /dns", asked{path: "/dns-query"}, false},
	{"string_exp", "url_path prefix /a /dns", asked{path: "/dns-query"}, true},
	{"string_exp", "url_path suffix dns", asked{path: "/dns-query"}, false},
	{"string_exp", "server_name suffix .example", asked{sni: "a.example"}, true},
	{"string_exp", "server_name contains .ex", asked{sni: "a.example"}, true},
	{"string_exp", "server_name contains .ex", asked{}, false},
	{"string_exp", `server_name regexp ^b ^a\.e`, asked{sni: "a.example"}, true},
	{"string_exp", `server_name regexp ^example`, asked{sni: "a.example"}, false},
	{"string_exp", "$WAYMARK_SET eq yes", asked{}, true},
	{"string_exp", "$WAYMARK_UNSET zl", asked{}, true},
	{"_true", "", asked{}, true},
	{"_false", "", asked{}, false},
}

func TestGolden(t *testing.T) {
	t.Setenv("WAYMARK_SET", "yes")
	t.Setenv("WAYMARK_EMPTY", "")
	env, dir := world(t)
	for _, c := range golden {
		args := strings.ReplaceAll(c.args, "&", "&"+dir+"/")
		m, err := kind(t, c.matcher).Make(env, args)
		if err != nil {
			t.Errorf("%s %s: %v", c.matcher, c.args, err)
			continue
		}
		r := c.r.request(t, env.Marks)
		if got := m.Match(r); got != c.want {
			t.Errorf("%s %s on %+v: %v", c.matcher, c.args, c.r, got)
		}
		if got := (Not{m}).Match(r); got == c.want {
			t.Errorf("! %s %s on %+v: %v", c.matcher, c.args, c.r, got)
		}
	}
}

// Every row of the table has cases, and no matcher allocates.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	env, dir := world(t)
	seen := map[string]bool{"class": true, "stranger": true, "transfer": true} // TestMatchers has these
	for _, c := range golden {
		seen[c.matcher] = true
		m, err := kind(t, c.matcher).Make(env, strings.ReplaceAll(c.args, "&", "&"+dir+"/"))
		if err != nil {
			t.Fatal(err)
		}
		r := c.r.request(t, env.Marks)
		m.Match(r) // a set of regular expressions makes room for the name's text once
		if n := testing.AllocsPerRun(50, func() { m.Match(r) }); n != 0 {
			t.Errorf("%s %s on %+v: %v allocations", c.matcher, c.args, c.r, n)
		}
	}
	for _, k := range Kinds() {
		if !seen[k.Name] {
			t.Errorf("no case for %s", k.Name)
		}
	}
}

func TestRefused(t *testing.T) {
	env, dir := world(t)
	for _, c := range []struct{ matcher, args, want string }{
		{"qname", "sufix:example", "sufix"},
		{"qname", "regexp:(", "regexp"},
		{"qname", "$nobody", "$nobody"},
		{"qname", "$addresses", "$addresses"}, // of the other kind
		{"qname", "&" + dir + "/nothing", "nothing"},
		{"client_ip", "192.0.2.256", "192.0.2.256"},
		{"client_ip", "192.0.2.0/33", "192.0.2.0/33"},
		{"client_ip", "$names", "$names"},
		{"client_ip", "&" + dir + "/names", "names:2"},
		{"qtype", "A", "A"},
		{"qtype", "65536", "65536"},
		{"qclass", "IN", "IN"},
		{"rcode", "-1", "-1"},
		{"mark", "0x1", "0x1"},
		{"mark", "4294967296", "4294967296"},
		{"env", "", "variable"},
		{"env", "A B C", "A B C"},
		{"random", "much", "much"},
		{"string_exp", "url_path", "operation"},
		{"string_exp", "path eq a", "path"},
		{"string_exp", "url_path is a", "is"},
		{"string_exp", "url_path regexp (", "regexp"},
	} {
		_, err := kind(t, c.matcher).Make(env, c.args)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, which should tell of %s", c.matcher, c.args, err, c.want)
		}
	}
}

// Random holds for about that part: of 10,000 draws the count is off by more than
// 250, five standard deviations, once in a million runs.
func TestRandomPart(t *testing.T) {
	n := 0
	for range 10_000 {
		if Random(0.5).Match(nil) {
			n++
		}
	}
	if n < 4750 || n > 5250 {
		t.Errorf("%d of 10,000", n)
	}
}

func TestMarksAreBounded(t *testing.T) {
	var m Marks
	for i := range uint32(serve.MaxMarks) {
		if n, err := m.Number(i * 1000); err != nil || n != uint16(i) {
			t.Fatalf("mark %d is number %d, %v", i, n, err)
		}
	}
	if n, err := m.Number(5000); err != nil || n != 5 {
		t.Errorf("a mark that is known is number %d, %v", n, err)
	}
	if _, err := m.Number(7); err == nil {
		t.Error("there is room for one more")
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("www.example\n")
	names, err := LoadDomainSet([]string{"own.example"}, []string{path, ""})
	if err != nil {
		t.Fatal(err)
	}
	r := asked{}.request(t, nil)
	own := asked{name: "own.example."}.request(t, nil)
	check := func(when string, want bool) {
		t.Helper()
		m := Qname{[]*DomainSet{names}}
		if m.Match(r) != want || !m.Match(own) {
			t.Errorf("%s: in the set %v, its own %v", when, m.Match(r), m.Match(own))
		}
	}
	check("as loaded", true)
	write("other.example\n")
	check("before the file is read again", true)
	if err := names.Reload(); err != nil {
		t.Fatal(err)
	}
	check("read again", false)
	write("www.example\ntwo words\n")
	if err := names.Reload(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a bad file: error %v", err)
	}
	check("after a bad file", false)

	write("192.0.2.1\n")
	addresses, err := LoadIPSet([]string{"198.51.100.1"}, []string{"", path})
	if err != nil {
		t.Fatal(err)
	}
	write("192.0.2.2\n")
	if err := addresses.Reload(); err != nil {
		t.Fatal(err)
	}
	write("nonsense\n")
	if err := addresses.Reload(); err == nil || !strings.Contains(err.Error(), path+":1") {
		t.Errorf("a bad file: error %v", err)
	}
	for a, want := range map[string]bool{"192.0.2.1": false, "192.0.2.2": true, "198.51.100.1": true} {
		if got := addresses.Contains(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s in the set: %v", a, got)
		}
	}
	if f := addresses.Files(); len(f) != 1 || f[0] != path || len(names.Files()) != 1 {
		t.Errorf("files %q, %q", f, names.Files())
	}
}
