package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/store"
)

// imported puts a zone into the store and serves it, as the API does.
func (r *running) imported(name, text string) {
	r.t.Helper()
	apex, err := wire.ParseName(name)
	if err != nil {
		r.t.Fatal(err)
	}
	st := r.managed.store
	res, err := st.Import(r.t.Context(), store.Import{Zone: apex, Source: st.Source(store.Text{Name: "test", Body: strings.NewReader(text), Origin: apex})})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := (live{r.Server}).UseZone(res.Zone); err != nil {
		r.t.Fatal(err)
	}
}

// wants asks and checks the code.
func (r *running) wants(rcode int, name string) {
	r.t.Helper()
	if got := r.ask(name, dns.TypeA); got.Rcode != rcode {
		r.t.Errorf("%s: %s, want %s", name, dns.RcodeToString[got.Rcode], dns.RcodeToString[rcode])
	}
}

// A managed zone is served at once, over reloads and restarts, until it is deleted; a
// zone of a file with the same name comes first, and that is said.
func TestManagedZones(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(7))
	s.plan.ZoneStore = plan.ZoneStore{Path: filepath.Join(t.TempDir(), "zones.db"), Serial: "increment"}
	r := s.run(nil)
	const text = "@ 300 IN SOA ns hostmaster 1 3600 900 86400 300\n@ 300 IN NS ns\nns 300 IN A 192.0.2.1\nwww 300 IN A 192.0.2.2\n"
	r.wants(dns.RcodeRefused, "www.managed.example")
	r.imported("managed.example.", text)
	r.wants(dns.RcodeSuccess, "www.managed.example")
	r.wants(dns.RcodeSuccess, "ns.example.org")
	if _, err := r.Server.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wants(dns.RcodeSuccess, "www.managed.example")
	r.imported("example.org.", text)
	r.wants(dns.RcodeNameError, "www.example.org")
	if !strings.Contains(r.log.String(), "the file is served") {
		t.Errorf("nothing is said of two zones of one name: %s", r.log)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = s.run(nil)
	r.wants(dns.RcodeSuccess, "www.managed.example")
	apex, _ := wire.ParseName("managed.example.")
	if err := r.managed.store.Delete(t.Context(), apex, nil); err != nil {
		t.Fatal(err)
	}
	if err := (live{r.Server}).DropZone(apex); err != nil {
		t.Fatal(err)
	}
	r.wants(dns.RcodeRefused, "www.managed.example")
}

// A primary is an address, with or without a port, and a key of the configuration.
func TestPrimary(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(7))
	s.plan.Keys = []plan.TSIGKey{{Name: "Transfer.example", Algorithm: "hmac-sha256", Secret: "MTIzNDU2Nzg5MDEyMzQ1Ng=="}}
	r := s.run(nil)
	for _, c := range []struct{ addr, key, want, wrong string }{
		{"192.0.2.1", "", "192.0.2.1:53", ""},
		{"192.0.2.1:5353", "transfer.example.", "192.0.2.1:5353", ""},
		{"2001:db8::1", "", "[2001:db8::1]:53", ""},
		{"ns.example", "", "", "write an IP address"},
		{"192.0.2.1", "other", "", "no key"},
	} {
		p, err := (live{r.Server}).Primary(c.addr, c.key)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s %s: %v", c.addr, c.key, err)
			}
		case err != nil || p.Addr != c.want || (p.Key != nil) != (c.key != ""):
			t.Errorf("%s %s: %v, %v", c.addr, c.key, p, err)
		}
	}
}
