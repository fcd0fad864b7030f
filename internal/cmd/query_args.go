package cmd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// maxWireName is room for any name in wire format (RFC 1035 §2.3.4).
const maxWireName = 255

// lookup is one question to one server, as the arguments ask for it.
type lookup struct {
	server string // host, without port; empty until defaults are filled in
	port   string
	name   string // absolute, presentation format; empty until given
	rtype  uint16 // 0 until given
	class  uint16 // 0 until given
	head   lookupHeader
	edns   lookupEDNS
	way    lookupWay
	out    lookupOutput
}

// lookupHeader is what the header of the query says.
type lookupHeader struct {
	rd, ad, cd bool
	id         uint16
	idGiven    bool
	opcode     int
}

// lookupEDNS is the OPT record of the query (RFC 6891).
type lookupEDNS struct {
	on      bool
	version uint8
	size    uint16
	do      bool
	nsid    bool
	subnet  netip.Prefix // invalid: none
}

// lookupWay is how the query travels.
type lookupWay struct {
	tcp      bool
	ignoreTC bool // keep a truncated response instead of asking again over TCP
	timeout  time.Duration
	tries    int
}

// lookupOutput is how the response is shown.
type lookupOutput struct {
	short, json bool
}

// newLookup has the defaults: dig's, but for the AD bit and the cookie, which a
// question to an authoritative server has no use for.
func newLookup() *lookup {
	return &lookup{
		head: lookupHeader{rd: true},
		edns: lookupEDNS{on: true, size: 1232},
		way:  lookupWay{timeout: 5 * time.Second, tries: 3},
	}
}

// parseLookup reads arguments in any order, as dig does.
func parseLookup(args []string) (*lookup, error) {
	if len(args) == 0 {
		return nil, errors.New("nothing to ask: waymark query @127.0.0.1:5353 www.example.org A")
	}
	l := newLookup()
	for len(args) > 0 {
		used, err := l.argument(args)
		if err != nil {
			return nil, err
		}
		args = args[used:]
	}
	l.fill()
	return l, nil
}

// argument reads the first argument, with its value where it has one, and
// returns how many that were.
func (l *lookup) argument(args []string) (used int, err error) {
	arg := args[0]
	switch {
	case arg == "--json":
		l.out.json = true
		return 1, nil
	case strings.HasPrefix(arg, "@"):
		return 1, l.setServer(arg[1:])
	case strings.HasPrefix(arg, "+"):
		return 1, l.setOption(arg[1:])
	case strings.HasPrefix(arg, "-") && len(arg) > 1:
		return l.flag(args)
	default:
		return 1, l.word(arg)
	}
}

// flag reads a flag of one letter; its value may be joined to it.
func (l *lookup) flag(args []string) (used int, err error) {
	letter, value, used := args[0][:2], args[0][2:], 1
	if !strings.Contains("-x -p -q -t -c", letter) {
		return 0, fmt.Errorf("unknown flag %s: known are -x, -p, -q, -t and -c", args[0])
	}
	if value == "" {
		if len(args) < 2 {
			return 0, fmt.Errorf("%s: a value must follow", letter)
		}
		value, used = args[1], 2
	}
	switch letter {
	case "-x":
		return used, l.setReverse(value)
	case "-p":
		if _, err := number(value, 16); err != nil {
			return 0, fmt.Errorf("-p: %w", err)
		}
		l.port = value
		return used, nil
	case "-q":
		return used, l.setName(value)
	case "-t":
		t, ok := parseType(value)
		if !ok {
			return 0, fmt.Errorf("-t: unknown type %q: a mnemonic, or TYPE and a number", value)
		}
		l.rtype = t
		return used, nil
	default:
		class, ok := parseClass(value)
		if !ok {
			return 0, fmt.Errorf("-c: unknown class %q: IN, CH, HS, ANY, or CLASS and a number", value)
		}
		l.class = class
		return used, nil
	}
}

// word reads a bare word: a type, a class, else the name.
func (l *lookup) word(word string) error {
	if t, ok := parseType(word); ok && l.rtype == 0 {
		l.rtype = t
		return nil
	}
	if class, ok := parseClass(word); ok && l.class == 0 {
		l.class = class
		return nil
	}
	return l.setName(word)
}

func (l *lookup) setName(name string) error {
	if l.name != "" {
		return fmt.Errorf("%q: the name is %s already, and %q is no type or class", name, l.name, name)
	}
	absolute := dns.Fqdn(name)
	if _, err := dns.PackDomainName(absolute, make([]byte, maxWireName), 0, nil, false); err != nil {
		return fmt.Errorf("%q is no domain name", name)
	}
	l.name = absolute
	return nil
}

// setReverse asks for the name of an address (RFC 1035 §3.5, RFC 3596 §2.5).
func (l *lookup) setReverse(addr string) error {
	name, err := dns.ReverseAddr(addr)
	if err != nil {
		return fmt.Errorf("-x: %q is no IP address", addr)
	}
	if l.rtype == 0 {
		l.rtype = dns.TypePTR
	}
	return l.setName(name)
}

// setServer reads host, host:port, [v6]:port or v6; also the URL form in which
// a configuration writes addresses to listen on.
func (l *lookup) setServer(server string) error {
	if rest, ok := strings.CutPrefix(server, "tcp://"); ok {
		l.way.tcp, server = true, rest
	}
	server = strings.TrimPrefix(server, "udp://")
	if _, err := netip.ParseAddr(strings.Trim(server, "[]")); err == nil {
		l.server = strings.Trim(server, "[]")
		return nil
	}
	host, port := server, ""
	if strings.Contains(server, ":") {
		var err error
		if host, port, err = net.SplitHostPort(server); err != nil {
			return fmt.Errorf("@%s: neither host:port nor [IPv6]:port", server)
		}
		if _, err := number(port, 16); err != nil {
			return fmt.Errorf("@%s: port %w", server, err)
		}
		l.port = port
	}
	if host == "" {
		return fmt.Errorf("@%s: no host", server)
	}
	l.server = host
	return nil
}

// fill puts the defaults where nothing was given.
func (l *lookup) fill() {
	if l.server == "" {
		l.server = "127.0.0.1"
		if c, err := dns.ClientConfigFromFile("/etc/resolv.conf"); err == nil && len(c.Servers) > 0 {
			l.server = c.Servers[0]
		}
	}
	if l.port == "" {
		l.port = "53"
	}
	if l.class == 0 {
		l.class = dns.ClassINET
	}
	if l.rtype == 0 && l.name == "" {
		l.rtype = dns.TypeNS
	}
	if l.rtype == 0 {
		l.rtype = dns.TypeA
	}
	if l.name == "" {
		l.name = "."
	}
	// RFC 5936 §4.2: a transfer of a zone travels over TCP.
	l.way.tcp = l.way.tcp || l.rtype == dns.TypeAXFR
}

// parseType reads a mnemonic or TYPEnnn (RFC 3597 §5).
func parseType(word string) (uint16, bool) {
	word = strings.ToUpper(word)
	if t, ok := dns.StringToType[word]; ok && t != dns.TypeNone && t != dns.TypeReserved {
		return t, true
	}
	return numbered(word, "TYPE")
}

// parseClass reads a mnemonic or CLASSnnn (RFC 3597 §5).
func parseClass(word string) (uint16, bool) {
	word = strings.ToUpper(word)
	if c, ok := dns.StringToClass[word]; ok {
		return c, true
	}
	return numbered(word, "CLASS")
}

func numbered(word, prefix string) (uint16, bool) {
	digits, ok := strings.CutPrefix(word, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return uint16(n), err == nil
}

// number reads a decimal number of at most so many bits; its error says so.
func number(word string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is no number from 0 to %d", word, uint64(1)<<bits-1)
	}
	return n, nil
}
