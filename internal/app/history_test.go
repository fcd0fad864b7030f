package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/config"
	"github.com/waymark-dns/waymark/internal/control"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
)

// fileSite is a site that is served from a configuration file, and changed through it.
func fileSite(t *testing.T) (s *site, path string, text func(zones ...string) string) {
	s = newSite(t)
	path = filepath.Join(s.dir, "waymark.yaml")
	udp := freeUDP(t)
	text = func(zones ...string) string {
		all := fmt.Sprintf("listen: [udp://%s]\nhistory: {dir: versions}\nzones:\n", udp)
		for _, z := range zones {
			all += fmt.Sprintf("  - {name: %s, file: %s}\n", z, z)
		}
		return all
	}
	s.edit = func(srv *Server) {
		parse := func(src []byte) (*plan.Plan, []plan.Problem) { return config.Parse(path, src) }
		srv.load = func() (*plan.Plan, error) {
			p, _, err := config.Load(path)
			return p, err
		}
		srv.history = srv.newHistory(Options{File: path, Plan: s.plan, Parse: parse, Log: srv.log})
	}
	return s, path, text
}

// freeUDP is a UDP address of loopback that was free a moment ago.
func freeUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

// begin serves a text.
func begin(s *site, path, text string) *running {
	s.t.Helper()
	s.write("waymark.yaml", text)
	p, problems, err := config.Load(path)
	for _, problem := range problems {
		if !problem.ZoneFile {
			s.t.Fatal(problem)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.plan = p
	return s.run(nil)
}

// What makes more zones fail than before is taken back; what fails already keeps no
// change out.
func TestChangeZones(t *testing.T) {
	s, path, text := fileSite(t)
	s.write("a.example", zoneText(1))
	s.write("b.example", "no zone\n")
	s.write("c.example", zoneText(3))
	r := begin(s, path, text("a.example"))
	h := r.history
	_, err := h.Apply(history.Change{Text: text("a.example", "b.example"), IfMatch: "*"})
	if !errors.Is(err, history.ErrNotTaken) || !strings.Contains(err.Error(), "b.example") || r.serial("a.example") != 1 || r.world.Load().failed != 0 {
		t.Errorf("a zone that does not load: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text("a.example") {
		t.Errorf("the file is %q, %v", got, err)
	}
	_, err = h.Apply(history.Change{Text: text("a.example", "none.example"), IfMatch: "*"})
	if _, ok := errors.AsType[*history.ProblemsError](err); !ok {
		t.Errorf("a zone without its file: %v", err)
	}
	s.write("a.example", "no zone\n")
	got, err := h.Apply(history.Change{Text: text("a.example", "c.example"), IfMatch: "*"})
	if !errors.Is(err, history.ErrNotTaken) {
		t.Errorf("a zone that has become worse: %+v, %v", got, err)
	}
	if got, err = h.Apply(history.Change{Text: text("a.example", "c.example"), IfMatch: "*"}); err != nil || !strings.Contains(got.Served, "2 zones, 1 failed") {
		t.Errorf("a zone that had failed already: %+v, %v", got, err)
	}
	if r.serial("a.example") != 1 || r.serial("c.example") != 3 {
		t.Errorf("serials are %d and %d", r.serial("a.example"), r.serial("c.example"))
	}
}

// A socket that cannot be opened is a problem of the text.
func TestChangeSockets(t *testing.T) {
	s, path, text := fileSite(t)
	s.write("a.example", zoneText(1))
	r := begin(s, path, text("a.example"))
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	taken := strings.Replace(text("a.example"), "listen: [", "listen: [udp://"+c.LocalAddr().String()+", ", 1)
	if problems := r.history.Check([]byte(taken)); len(problems) != 1 || problems[0].Pos.Line != 1 {
		t.Errorf("%v", problems)
	}
	if problems := r.history.Check([]byte(text("a.example"))); len(problems) > 0 {
		t.Errorf("its own socket: %v", problems)
	}
}

func TestConfigCommand(t *testing.T) {
	s, path, text := fileSite(t)
	s.write("a.example", zoneText(1))
	r := begin(s, path, text("a.example"))
	for _, c := range []struct {
		args      []string
		text, err string
	}{
		{nil, "", "what to do"},
		{[]string{"nothing"}, "", "no command config"},
		{[]string{"get"}, "", "wrong number"},
		{[]string{"get", ""}, "a.example", ""},
		{[]string{"check", "x: 1"}, "unknown section", "problems"},
		{[]string{"apply", "{"}, "", "reading the change"},
		{[]string{"confirm", "x"}, "", "no such version"},
		{[]string{"confirm", ""}, "", "no such change"},
		{[]string{"show", "7"}, "", "no such version"},
		{[]string{"rollback", "-1", "{}"}, "", "no such version"},
		{[]string{"diff", "current", ""}, "no difference", ""},
		{[]string{"history"}, "no versions yet", ""},
	} {
		resp := r.command(t.Context(), control.Request{Command: "config", Args: c.args})
		if !strings.Contains(resp.Text, c.text) || !strings.Contains(resp.Error, c.err) || (resp.Error == "") != (c.err == "") {
			t.Errorf("%q: %+v", c.args, resp)
		}
	}
	r.history = nil
	if resp := r.command(t.Context(), control.Request{Command: "config", Args: []string{"history"}}); !strings.Contains(resp.Error, "without a configuration file") {
		t.Errorf("without a file: %+v", resp)
	}
}
