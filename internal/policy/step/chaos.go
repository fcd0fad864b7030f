package step

import (
	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// Chaos answers TXT questions of class CHAOS about the server itself (RFC 4892).
// Names that it does not have are left to the next rule.
type Chaos struct{ entries []chaosEntry }

type chaosEntry struct {
	name wire.Name
	set  wire.RRset
}

// NewChaos makes the answers: identity for id.server and hostname.bind, version
// for version.server and version.bind. An empty text answers nothing.
func NewChaos(identity, version string) Chaos {
	var a Chaos
	for _, e := range []struct{ name, text string }{
		{"id.server.", identity}, {"hostname.bind.", identity},
		{"version.server.", version}, {"version.bind.", version},
	} {
		if e.text == "" {
			continue
		}
		name, err := wire.ParseName(e.name)
		if err != nil {
			panic(err)
		}
		text := e.text[:min(len(e.text), 255)]
		rdata := append([]byte{0, byte(len(text) + 1), byte(len(text))}, text...)
		if len(text) == 255 {
			rdata[0], rdata[1] = 1, 0
		}
		a.entries = append(a.entries, chaosEntry{name, wire.RRset{Type: wire.TypeTXT, Class: wire.ClassCH, Count: 1, RDATA: rdata}})
	}
	return a
}

// Do is part of policy.Step.
func (a Chaos) Do(r *serve.Request) policy.Next {
	for i := range a.entries {
		e := &a.entries[i]
		if !wire.EqualFold(e.name, r.Ask.Name) {
			continue
		}
		r.Note.Source = serve.SourceLocal
		r.Reply.Flags |= wire.FlagAA
		if r.Ask.Type == wire.TypeTXT || r.Ask.Type == wire.TypeANY {
			r.Reply.Add(wire.Answer, r.Ask.Name, &e.set, nil)
		}
		r.Finish(wire.NoError)
		return policy.Stop
	}
	return policy.Go
}
