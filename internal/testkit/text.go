package testkit

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Response is a response as text: code and flags, the question where its name
// is not that of q letter by letter, then the records of each section in their
// order. OPT is left out.
func Response(q Question, r *dns.Msg) string {
	var b strings.Builder
	b.WriteString(dns.RcodeToString[r.Rcode])
	for _, f := range []struct {
		set  bool
		name string
	}{{r.Authoritative, "aa"}, {r.Truncated, "tc"}, {r.RecursionAvailable, "ra"}, {r.AuthenticatedData, "ad"}} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	b.WriteByte('\n')
	if r.Question[0].Name != q.Name {
		fmt.Fprintf(&b, "question %s\n", r.Question[0].Name)
	}
	for _, s := range []struct {
		name    string
		records []dns.RR
	}{{"answer", r.Answer}, {"authority", r.Ns}, {"additional", r.Extra}} {
		head := s.name + "\n"
		for _, rr := range s.records {
			if rr.Header().Rrtype == dns.TypeOPT {
				continue
			}
			b.WriteString(head + "  " + record(rr) + "\n")
			head = ""
		}
	}
	return b.String()
}

// record is a record without its class.
func record(rr dns.RR) string {
	h := rr.Header()
	rdata := strings.TrimPrefix(rr.String(), h.String())
	typ := dns.TypeToString[h.Rrtype]
	if typ == "" {
		typ = fmt.Sprintf("TYPE%d", h.Rrtype)
	}
	if _, unknown := rr.(*dns.RFC3597); unknown {
		_, rdata, _ = strings.Cut(rr.String(), typ+"\t")
	}
	return fmt.Sprintf("%s %d %s %s", h.Name, h.Ttl, typ, rdata)
}

// ParseQuestion reads "NAME TYPE" and any of: do, tcp, size=N, ch.
func ParseQuestion(line string) (Question, error) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return Question{}, fmt.Errorf("reading the question %q: name and type are missing", line)
	}
	q := Question{Name: f[0]}
	typ, ok := dns.StringToType[f[1]]
	if !ok {
		if _, err := fmt.Sscanf(f[1], "TYPE%d", &typ); err != nil {
			return Question{}, fmt.Errorf("reading the question %q: no such type: %w", line, err)
		}
	}
	q.Type = typ
	for _, word := range f[2:] {
		switch {
		case word == "do":
			q.DO = true
		case word == "tcp":
			q.TCP = true
		case word == "ch":
			q.Class = dns.ClassCHAOS
		default:
			if _, err := fmt.Sscanf(word, "size=%d", &q.Size); err != nil {
				return Question{}, fmt.Errorf("reading the question %q: %s is none of do, tcp, size=N, ch: %w", line, word, err)
			}
		}
	}
	return q, nil
}
