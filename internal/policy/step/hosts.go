package step

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/waymark-dns/waymark/internal/nameset"
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// HostsArgs says which names have which addresses: "pattern address…", in entries
// or one a line in files. A pattern without a kind is a full name.
type HostsArgs struct {
	Entries []string `key:"entries"`
	Files   []string `key:"files"`
}

// Hosts answers questions for addresses of names that it knows. A name that it
// knows by addresses of the other family alone has none of this one.
type Hosts struct {
	names  *nameset.Set // values are places in lists
	lists  []addresses
	nodata wire.RRset
}

const hostsTTL = 10

// NewHosts reads the names and addresses of a configuration.
func NewHosts(args *HostsArgs) (any, error) {
	a := &Hosts{nodata: NodataSOA()}
	places := map[string]uint32{} // many names have the same addresses
	var err error
	a.names, err = readValues(args.Entries, args.Files, func(words []string) (uint32, error) {
		text := strings.Join(words, " ")
		n, ok := places[text]
		if ok {
			return n, nil
		}
		list, err := newAddresses(words, hostsTTL)
		n = uint32(len(a.lists))
		a.lists = append(a.lists, list)
		places[text] = n
		return n, err
	})
	return a, err
}

// Do is part of policy.Step.
func (a *Hosts) Do(r *serve.Request) policy.Next {
	if r.Ask.Class != wire.ClassIN || r.Ask.Type != wire.TypeA && r.Ask.Type != wire.TypeAAAA {
		return policy.Go
	}
	n, ok := a.names.Find(r.Ask.Name, r.Ask.Labels)
	if !ok || a.lists[n].empty() {
		return policy.Go
	}
	r.Empty()
	if set := a.lists[n].of(r.Ask.Type); set != nil {
		r.Reply.Add(wire.Answer, r.Ask.Name, set, nil)
	} else {
		r.Reply.Add(wire.Authority, r.Ask.Name, &a.nodata, nil)
	}
	return answered(r)
}

// NodataSOA is the SOA record of negative responses that no zone stands behind, so
// that they are kept for five minutes (RFC 2308 §5).
func NodataSOA() wire.RRset {
	rdata := []byte("\x09localhost\x00\x06nobody\x07invalid\x00")
	for _, n := range []uint32{1, 1800, 900, 604800, 86400} {
		rdata = binary.BigEndian.AppendUint32(rdata, n)
	}
	set := wire.RRset{Type: wire.TypeSOA, Class: wire.ClassIN, TTL: 300}
	appendRecord(&set, rdata)
	return set
}

// readValues reads rules, a pattern and words behind it, as they are written and
// one a line from files. value is the number that stands for the words.
func readValues(rules, files []string, value func(words []string) (uint32, error)) (*nameset.Set, error) {
	b := nameset.NewBuilder(len(rules))
	for i, rule := range rules {
		if err := addValue(b, strings.Fields(rule), value); err != nil {
			return nil, fmt.Errorf("reading line %d, %q: %w", i+1, rule, err)
		}
	}
	for _, file := range files {
		if err := b.ReadValuesFile(file, nameset.Full, value); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

func addValue(b *nameset.Builder, words []string, value func(words []string) (uint32, error)) error {
	if len(words) == 0 {
		return errors.New("there is no pattern")
	}
	x, err := nameset.ParseExpr(words[0], nameset.Full)
	if err != nil {
		return err
	}
	n, err := value(words[1:])
	if err != nil {
		return err
	}
	return b.Add(x, n)
}
