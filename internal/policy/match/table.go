package match

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/addrset"
	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Env is what the arguments of matchers may refer to.
type Env struct {
	Objects map[string]any // by tag
	Marks   *Marks
}

// Marks numbers the marks of a configuration.
type Marks struct{ numbers map[uint32]uint16 }

// Number is the number of a mark. An error says that there are too many.
func (m *Marks) Number(mark uint32) (uint16, error) {
	n, ok := m.numbers[mark]
	if ok {
		return n, nil
	}
	if len(m.numbers) == serve.MaxMarks {
		return 0, fmt.Errorf("numbering mark %d: there are %d different marks already", mark, serve.MaxMarks)
	}
	if m.numbers == nil {
		m.numbers = map[uint32]uint16{}
	}
	n = uint16(len(m.numbers))
	m.numbers[mark] = n
	return n, nil
}

// Kind is one matcher that rules can name.
type Kind struct {
	Name string
	Args string // what the arguments are; empty is none
	Doc  string
	Make func(e *Env, args string) (policy.Matcher, error)
}

// Kinds is all matchers.
func Kinds() []Kind {
	const domains, addresses = "expressions, $set or &file", "addresses, prefixes, $set or &file"
	return []Kind{
		{"class", "IN or CH", "the question's class", makeClass},
		{"stranger", "", "the client may ask for our own zones only", plain(Stranger{})},
		{"transfer", "", "the question asks for a zone transfer, AXFR or IXFR", plain(Transfer{})},
		{"qname", domains, "the question's name", withDomains(func(s []*DomainSet) policy.Matcher { return Qname{s} })},
		{"cname", domains, "the name that a CNAME of the answer leads to", withDomains(func(s []*DomainSet) policy.Matcher { return Cname{s} })},
		{"client_ip", addresses, "the client's address", withAddresses(func(s []*IPSet) policy.Matcher { return ClientIP{s} })},
		{"resp_ip", addresses, "an address in the answer", withAddresses(func(s []*IPSet) policy.Matcher { return RespIP{s} })},
		{"ptr_ip", addresses, "the address that a PTR question asks for", withAddresses(func(s []*IPSet) policy.Matcher { return PtrIP{s} })},
		{"qtype", "numbers", "the question's type", withNumbers(func(n []uint16) policy.Matcher { return Qtype(n) })},
		{"qclass", "numbers", "the question's class", withNumbers(func(n []uint16) policy.Matcher { return Qclass(n) })},
		{"rcode", "numbers", "the response's code", withNumbers(func(n []uint16) policy.Matcher { return Rcode(n) })},
		{"has_resp", "", "there is a response", plain(HasResp{})},
		{"has_wanted_ans", "", "the answer has a record of the type that was asked for", plain(HasWantedAns{})},
		{"mark", "numbers", "the request has one of the marks", makeMark},
		{"env", "a variable, perhaps with its value", "the variable is set in the environment, to that value", makeEnv},
		{"random", "a number from 0 to 1", "that part of all requests", makeRandom},
		{"string_exp", "a source, an operation, arguments", "a text that is known of the client", makeText},
		{"_true", "", "always", plain(Const(true))},
		{"_false", "", "never", plain(Const(false))},
	}
}

// plain is the Make of a matcher without arguments. Arguments are not looked at, as
// old configurations have them.
func plain(m policy.Matcher) func(*Env, string) (policy.Matcher, error) {
	return func(_ *Env, args string) (policy.Matcher, error) { return m, nil }
}

func makeClass(_ *Env, args string) (policy.Matcher, error) {
	switch args {
	case "IN":
		return Class(wire.ClassIN), nil
	case "CH":
		return Class(wire.ClassCH), nil
	}
	return nil, fmt.Errorf("reading class %q: not IN or CH", args)
}

// withDomains reads expressions: those that are written make a set of their own,
// which comes behind those that are named.
func withDomains(made func([]*DomainSet) policy.Matcher) func(*Env, string) (policy.Matcher, error) {
	return func(e *Env, args string) (policy.Matcher, error) {
		b := nameset.NewBuilder(0)
		sets, own, err := words[*DomainSet](e, args, "domain", func(path string) error { return b.ReadFile(path, nameset.Domain) }, func(word string) error {
			x, err := nameset.ParseExpr(word, nameset.Domain)
			if err != nil {
				return err
			}
			return b.Add(x, 0)
		})
		if err != nil {
			return nil, err
		}
		if own {
			sets = append(sets, NewDomainSet(b.Build()))
		}
		return made(sets), nil
	}
}

// withAddresses is withDomains for addresses.
func withAddresses(made func([]*IPSet) policy.Matcher) func(*Env, string) (policy.Matcher, error) {
	return func(e *Env, args string) (policy.Matcher, error) {
		var list PrefixList
		sets, own, err := words[*IPSet](e, args, "address", list.ReadFile, list.Add)
		if err != nil {
			return nil, err
		}
		if own {
			sets = append(sets, NewIPSet(addrset.New(list)))
		}
		return made(sets), nil
	}
}

// words reads arguments: $tag is a set of that kind, &file goes to file, all else to
// word. own tells whether there was any of the latter two.
func words[T any](e *Env, args, kind string, file, word func(string) error) (sets []T, own bool, err error) {
	for _, w := range strings.Fields(args) {
		switch w[0] {
		case '$':
			s, ok := e.Objects[w[1:]].(T)
			if !ok {
				return nil, false, fmt.Errorf("reading %s: no %s set of that tag", w, kind)
			}
			sets = append(sets, s)
			continue
		case '&':
			err = file(w[1:])
		default:
			err = word(w)
		}
		if err != nil {
			return nil, false, err
		}
		own = true
	}
	return sets, own, nil
}

func withNumbers(made func([]uint16) policy.Matcher) func(*Env, string) (policy.Matcher, error) {
	return func(_ *Env, args string) (policy.Matcher, error) {
		var all []uint16
		for _, word := range strings.Fields(args) {
			n, err := strconv.ParseUint(word, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("reading number %q: %w", word, err)
			}
			all = append(all, uint16(n))
		}
		return made(all), nil
	}
}

func makeMark(e *Env, args string) (policy.Matcher, error) {
	var all Mark
	for _, word := range strings.Fields(args) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading mark %q: %w", word, err)
		}
		number, err := e.Marks.Number(uint32(n))
		if err != nil {
			return nil, err
		}
		all = append(all, number)
	}
	return all, nil
}

func makeEnv(_ *Env, args string) (policy.Matcher, error) {
	words := strings.Fields(args)
	if len(words) < 1 || len(words) > 2 {
		return nil, fmt.Errorf("reading %q: write a variable, perhaps with its value", args)
	}
	value, set := os.LookupEnv(words[0])
	return Const(set && (len(words) == 1 || value == words[1])), nil
}

func makeRandom(_ *Env, args string) (policy.Matcher, error) {
	p, err := strconv.ParseFloat(strings.TrimSpace(args), 64)
	if err != nil {
		return nil, fmt.Errorf("reading part %q: %w", args, err)
	}
	return Random(p), nil
}
