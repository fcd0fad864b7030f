package cmd

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// printText shows a response so that a person reads it and a zone parser could:
// all but the records is a comment.
func printText(w io.Writer, r *reply) error {
	var b strings.Builder
	if r.truncated {
		b.WriteString("; truncated over UDP, asked again over TCP\n")
	}
	fmt.Fprintf(&b, "; %-10s %s   id %d   flags %s\n", rcodeText(r.msg), dns.OpcodeToString[r.msg.Opcode], r.msg.Id, orDash(strings.Join(flags(r.msg), " ")))
	if opt := r.msg.IsEdns0(); opt != nil {
		printEDNS(&b, opt)
	}
	b.WriteString("\n; question\n")
	for _, q := range r.msg.Question {
		fmt.Fprintf(&b, ";%s  %s  %s\n", q.Name, className(q.Qclass), typeName(q.Qtype))
	}
	printSections(&b, r.msg)
	if len(r.msg.Answer) > 0 && r.msg.Question != nil && r.msg.Question[0].Qtype == dns.TypeAXFR {
		b.WriteString("\n; the first message of a transfer; the rest was not read\n")
	}
	fmt.Fprintf(&b, "\n; %s   %s   from %s over %s\n", r.took.Round(time.Microsecond), counted(r.size, "octet"), r.server, strings.ToUpper(r.proto))
	_, err := io.WriteString(w, b.String())
	return err
}

// printSections shows the records.
func printSections(b *strings.Builder, msg *dns.Msg) {
	wide := columnsOf(msg)
	for _, s := range sections(msg) {
		if len(s.records) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n; %s: %s\n", s.name, counted(len(s.records), "record"))
		for _, rr := range s.records {
			wide.print(b, rr)
		}
	}
}

// printEDNS shows the OPT record, one line and one per option.
func printEDNS(b *strings.Builder, opt *dns.OPT) {
	do := ""
	if opt.Do() {
		do = "   do"
	}
	fmt.Fprintf(b, "; %-10s version %d   size %d%s\n", "EDNS", opt.Version(), opt.UDPSize(), do)
	for _, o := range opt.Option {
		name, text := option(o)
		fmt.Fprintf(b, "; %-10s %s\n", name, text)
	}
}

// option is the name and the text of an EDNS option.
func option(o dns.EDNS0) (name, text string) {
	switch o := o.(type) {
	case *dns.EDNS0_NSID:
		raw, err := hex.DecodeString(o.Nsid)
		if err != nil {
			return "NSID", o.Nsid
		}
		return "NSID", fmt.Sprintf("%s (%q)", orDash(o.Nsid), raw)
	case *dns.EDNS0_EDE:
		text = strconv.Itoa(int(o.InfoCode))
		if known, ok := dns.ExtendedErrorCodeToString[o.InfoCode]; ok {
			text += " " + known
		}
		if o.ExtraText != "" {
			text += fmt.Sprintf(": %q", o.ExtraText)
		}
		return "EDE", text
	case *dns.EDNS0_SUBNET:
		return "SUBNET", o.String()
	case *dns.EDNS0_COOKIE:
		return "COOKIE", o.String()
	case *dns.EDNS0_TCP_KEEPALIVE:
		return "KEEPALIVE", o.String()
	case *dns.EDNS0_PADDING:
		return "PADDING", counted(len(o.Padding), "octet")
	default:
		return fmt.Sprintf("OPTION%d", o.Option()), o.String()
	}
}

// columns are the widths that let the records of all sections stand in line.
type columns struct{ owner, ttl, class, rtype int }

// A very long owner pushes its own line out, not everyone's.
const widestOwner = 44

func columnsOf(m *dns.Msg) columns {
	var c columns
	for _, s := range sections(m) {
		for _, rr := range s.records {
			h := rr.Header()
			if n := len(h.Name); n <= widestOwner {
				c.owner = max(c.owner, n)
			}
			c.ttl = max(c.ttl, len(strconv.FormatUint(uint64(h.Ttl), 10)))
			c.class = max(c.class, len(className(h.Class)))
			c.rtype = max(c.rtype, len(typeName(h.Rrtype)))
		}
	}
	return c
}

func (c columns) print(b *strings.Builder, rr dns.RR) {
	h := rr.Header()
	fmt.Fprintf(b, "%-*s  %*d  %-*s  %-*s  %s\n", c.owner, h.Name, c.ttl, h.Ttl,
		c.class, className(h.Class), c.rtype, typeName(h.Rrtype), rdata(rr))
}

// section is one of the three that hold records; OPT is no record.
type section struct {
	name    string
	records []dns.RR
}

func sections(m *dns.Msg) [3]section {
	var extra []dns.RR
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	return [3]section{{"answer", m.Answer}, {"authority", m.Ns}, {"additional", extra}}
}

// rdata is the RDATA in presentation format: what follows the four fields that
// every record begins with.
func rdata(rr dns.RR) string {
	if fields := strings.SplitN(rr.String(), "\t", 5); len(fields) == 5 {
		return fields[4]
	}
	return ""
}

// printShort shows the RDATA of the answer section only, a line each.
func printShort(w io.Writer, r *reply) error {
	for _, rr := range r.msg.Answer {
		if _, err := fmt.Fprintln(w, rdata(rr)); err != nil {
			return err
		}
	}
	return nil
}

// jsonReply is what +json prints. Names and RDATA are in presentation format.
type jsonReply struct {
	Server    string       `json:"server"`
	Transport string       `json:"transport"`
	Truncated bool         `json:"truncated_over_udp"`
	TimeMS    float64      `json:"time_ms"`
	Size      int          `json:"size"`
	ID        uint16       `json:"id"`
	Opcode    string       `json:"opcode"`
	Rcode     string       `json:"rcode"`
	Flags     []string     `json:"flags"`
	EDNS      *jsonEDNS    `json:"edns,omitempty"`
	Question  []jsonRecord `json:"question"`
	Answer    []jsonRecord `json:"answer"`
	Authority []jsonRecord `json:"authority"`
	Extra     []jsonRecord `json:"additional"`
}

// jsonEDNS is the OPT record of the response.
type jsonEDNS struct {
	Version uint8        `json:"version"`
	Size    uint16       `json:"size"`
	DO      bool         `json:"do"`
	Options []jsonOption `json:"options"`
}

// jsonOption is one EDNS option.
type jsonOption struct {
	Code uint16 `json:"code"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// jsonRecord is a record, or a question, which has neither TTL nor RDATA.
type jsonRecord struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Class string  `json:"class"`
	TTL   *uint32 `json:"ttl,omitempty"`
	Data  *string `json:"data,omitempty"`
}

func printJSON(w io.Writer, r *reply) error {
	s := sections(r.msg)
	out := jsonReply{
		Server: r.server, Transport: r.proto, Truncated: r.truncated,
		TimeMS: float64(r.took.Microseconds()) / 1000, Size: r.size,
		ID: r.msg.Id, Opcode: dns.OpcodeToString[r.msg.Opcode], Rcode: rcodeText(r.msg), Flags: flags(r.msg),
		Question: []jsonRecord{}, Answer: jsonRecords(s[0]), Authority: jsonRecords(s[1]), Extra: jsonRecords(s[2]),
	}
	for _, q := range r.msg.Question {
		out.Question = append(out.Question, jsonRecord{Name: q.Name, Type: typeName(q.Qtype), Class: className(q.Qclass)})
	}
	if opt := r.msg.IsEdns0(); opt != nil {
		out.EDNS = &jsonEDNS{Version: opt.Version(), Size: opt.UDPSize(), DO: opt.Do(), Options: []jsonOption{}}
		for _, o := range opt.Option {
			name, text := option(o)
			out.EDNS.Options = append(out.EDNS.Options, jsonOption{Code: o.Option(), Name: name, Text: text})
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func jsonRecords(s section) []jsonRecord {
	out := make([]jsonRecord, 0, len(s.records))
	for _, rr := range s.records {
		h, data := rr.Header(), rdata(rr)
		out = append(out, jsonRecord{Name: h.Name, Type: typeName(h.Rrtype), Class: className(h.Class), TTL: &h.Ttl, Data: &data})
	}
	return out
}

// flags are the bits of the header that are set, QR aside: every response has it.
func flags(m *dns.Msg) []string {
	set := []string{}
	for _, f := range [...]struct {
		on   bool
		name string
	}{
		{m.Authoritative, "aa"}, {m.Truncated, "tc"}, {m.RecursionDesired, "rd"}, {m.RecursionAvailable, "ra"},
		{m.Zero, "z"}, {m.AuthenticatedData, "ad"}, {m.CheckingDisabled, "cd"},
	} {
		if f.on {
			set = append(set, f.name)
		}
	}
	return set
}

// rcodeText is the mnemonic of the RCODE, all twelve bits of it.
func rcodeText(m *dns.Msg) string {
	if m.Rcode == dns.RcodeBadVers && m.IsTsig() == nil {
		return "BADVERS" // 16 is BADSIG inside TSIG (RFC 6895 §2.3)
	}
	if name, ok := dns.RcodeToString[m.Rcode]; ok {
		return name
	}
	return fmt.Sprintf("RCODE%d", m.Rcode)
}

func typeName(t uint16) string  { return dns.Type(t).String() }
func className(c uint16) string { return dns.Class(c).String() }
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// counted is "1 record", "2 records".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
