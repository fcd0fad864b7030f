package cmd

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// queryOption is one +OPTION of `waymark query`: a switch, or one with a value.
type queryOption struct {
	name  string
	value string // what the value is called in the help; empty for a switch
	help  string
	flip  func(l *lookup, on bool)
	set   func(l *lookup, value string) error
}

// form is how the option is written.
func (o *queryOption) form() string {
	if o.value == "" {
		return "+[no]" + o.name
	}
	return "+" + o.name + "=" + o.value
}

// queryOptions is every option, in the order of the help.
var queryOptions = [...]queryOption{
	{name: "dnssec", help: "set DO: ask for DNSSEC records", flip: func(l *lookup, on bool) { l.edns.do = on; l.edns.on = l.edns.on || on }},
	{name: "tcp", help: "ask over TCP at once", flip: func(l *lookup, on bool) { l.way.tcp = on }},
	{name: "ignore", help: "keep a truncated response; do not ask again over TCP", flip: func(l *lookup, on bool) { l.way.ignoreTC = on }},
	{name: "recurse", help: "set RD, the default", flip: func(l *lookup, on bool) { l.head.rd = on }},
	{name: "ad", help: "set AD: ask whether the data is authenticated", flip: func(l *lookup, on bool) { l.head.ad = on }},
	{name: "cd", help: "set CD: ask for data whatever validation says", flip: func(l *lookup, on bool) { l.head.cd = on }},
	{name: "edns", help: "send an OPT record, the default", flip: func(l *lookup, on bool) { l.edns.on = on }},
	{name: "ednsversion", value: "N", help: "EDNS version", set: setEDNSVersion},
	{name: "bufsize", value: "OCTETS", help: "the largest UDP response to accept (1232)", set: setBufsize},
	{name: "nsid", help: "ask for the name server identifier (RFC 5001)", flip: func(l *lookup, on bool) { l.edns.nsid = on; l.edns.on = l.edns.on || on }},
	{name: "subnet", value: "ADDR/LEN", help: "send a client subnet (RFC 7871)", set: setSubnet},
	{name: "id", value: "N", help: "the query's ID, else a random one", set: setID},
	{name: "opcode", value: "NAME", help: "the query's opcode, by name or number", set: setOpcode},
	{name: "time", value: "SECONDS", help: "wait so long for a response (5)", set: setTime},
	{name: "tries", value: "N", help: "ask so many times over UDP (3)", set: setTries},
	{name: "short", help: "print the RDATA of the answer only", flip: func(l *lookup, on bool) { l.out.short = on }},
	{name: "json", help: "print one JSON object", flip: func(l *lookup, on bool) { l.out.json = on }},
}

// optionByOtherName is what dig's users also write.
var optionByOtherName = map[string]string{
	"do": "dnssec", "vc": "tcp", "rdflag": "recurse", "adflag": "ad", "cdflag": "cd", "qid": "id", "timeout": "time", "retry": "tries",
}

// setOption reads one option without its plus sign.
func (l *lookup) setOption(text string) error {
	name, value, valued := strings.Cut(text, "=")
	o, on := findOption(strings.ToLower(name))
	switch {
	case o == nil:
		return fmt.Errorf("unknown option +%s%s", name, meant(name))
	case o.set == nil && valued:
		return fmt.Errorf("+%s takes no value", o.name)
	case o.set == nil:
		o.flip(l, on)
		return nil
	case !on:
		return fmt.Errorf("+%s is no switch: write %s", o.name, o.form())
	case !valued || value == "":
		return fmt.Errorf("+%s needs a value: %s", o.name, o.form())
	}
	if err := o.set(l, value); err != nil {
		return fmt.Errorf("+%s: %w", o.name, err)
	}
	return nil
}

// findOption finds an option by name, other name or unique beginning, with or
// without "no" before it; nil when there is none.
func findOption(name string) (o *queryOption, on bool) {
	if o = optionNamed(name); o != nil {
		return o, true
	}
	if rest, ok := strings.CutPrefix(name, "no"); ok {
		return optionNamed(rest), false
	}
	return nil, false
}

func optionNamed(name string) *queryOption {
	if other, ok := optionByOtherName[name]; ok {
		name = other
	}
	var found *queryOption
	for i := range queryOptions {
		o := &queryOptions[i]
		if o.name == name {
			return o
		}
		// One letter is too little to mean anything.
		if len(name) < 2 || !strings.HasPrefix(o.name, name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = o
	}
	return found
}

// meant is " (did you mean +X?)" for the nearest option, or nothing when none is
// near.
func meant(name string) string {
	best, least := "", 4
	for i := range queryOptions {
		for _, known := range []string{queryOptions[i].name, "no" + queryOptions[i].name} {
			if d := editDistance(strings.ToLower(name), known); d < least {
				best, least = known, d
			}
		}
	}
	if best == "" {
		return ": waymark query --help lists them"
	}
	return fmt.Sprintf(" (did you mean +%s?)", best)
}

// editDistance counts the octets to insert, delete or replace to make b of a
// (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func setEDNSVersion(l *lookup, value string) error {
	n, err := number(value, 8)
	l.edns.version, l.edns.on = uint8(n), true
	return err
}

func setBufsize(l *lookup, value string) error {
	n, err := number(value, 16)
	l.edns.size, l.edns.on = uint16(n), true
	return err
}

func setID(l *lookup, value string) error {
	n, err := number(value, 16)
	l.head.id, l.head.idGiven = uint16(n), true
	return err
}

func setOpcode(l *lookup, value string) error {
	if code, ok := dns.StringToOpcode[strings.ToUpper(value)]; ok {
		l.head.opcode = code
		return nil
	}
	n, err := number(value, 4)
	l.head.opcode = int(n)
	return err
}

func setTries(l *lookup, value string) error {
	n, err := number(value, 8)
	if err == nil && n == 0 {
		err = errors.New("at least once")
	}
	l.way.tries = int(n)
	return err
}

func setTime(l *lookup, value string) error {
	d, err := time.ParseDuration(value + "s")
	if err != nil || d <= 0 || d > time.Hour {
		return fmt.Errorf("%q is no number of seconds, up to 3600", value)
	}
	l.way.timeout = d
	return nil
}

// setSubnet reads an address with or without a length; 0 asks not to be told
// apart by address (RFC 7871 §7.1.2).
func setSubnet(l *lookup, value string) error {
	if value == "0" {
		value = "0.0.0.0/0"
	}
	p, err := netip.ParsePrefix(value)
	if err != nil {
		a, addrErr := netip.ParseAddr(value)
		if addrErr != nil {
			return fmt.Errorf("%q is no address and no prefix", value)
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	l.edns.subnet, l.edns.on = p.Masked(), true
	return nil
}
