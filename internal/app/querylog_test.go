package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/qlog"
)

// rowsIn is every row of a log that is closed.
func rowsIn(t *testing.T, dir string) (rows []qlog.Row) {
	t.Helper()
	files, err := qlog.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Tail {
			t.Errorf("%s is left", f.Path)
		}
		if err := qlog.ReadSegment(f.Path, func(r *qlog.Row) bool { rows = append(rows, *r); return true }); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// Each query is a row, over UDP and TCP, with the rule that decided; a reload moves the
// log elsewhere, and what was asked before stays where it was.
func TestQueryLog(t *testing.T) {
	s := newSite(t)
	s.zone("example.org", zoneText(7))
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	s.plan.QueryLog = plan.DefaultQueryLog()
	s.plan.QueryLog.Dir = first
	next := *s.plan
	next.QueryLog.Dir = second
	r := s.run(func() (*plan.Plan, error) { return &next, nil })
	r.ask("ns.example.org", dns.TypeA)
	q := new(dns.Msg)
	q.SetQuestion("Missing.example.org.", dns.TypeAAAA)
	q.SetEdns0(1232, true)
	r.exchange("tcp", q)
	if _, err := r.Server.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.ask("example.com", dns.TypeA)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	rows := rowsIn(t, first)
	if len(rows) != 2 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	a, b := rows[0], rows[1]
	if a.Name != "ns.example.org." || a.Type != "A" || a.Protocol != "udp" || a.Source != "zone" || a.Rcode != "NOERROR" || a.Client != "127.0.0.1" || a.Answers == "" || a.Size == 0 || !strings.Contains(a.Rule, "zone") {
		t.Errorf("%+v", a)
	}
	if b.Name != "missing.example.org." || b.Protocol != "tcp" || b.Rcode != "NXDOMAIN" || !strings.Contains(b.Flags, "DO") || !strings.HasPrefix(b.Listener, "tcp://") {
		t.Errorf("%+v", b)
	}
	if rows = rowsIn(t, second); len(rows) != 1 || rows[0].Name != "example.com." || rows[0].Source != "refused" {
		t.Errorf("%+v", rows)
	}
}
