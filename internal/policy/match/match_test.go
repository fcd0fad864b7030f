package match

import (
	"testing"

	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		matcher, args string
		ask           serve.Ask
		want          bool
	}{
		{"class", "IN", serve.Ask{Class: wire.ClassIN}, true},
		{"class", "IN", serve.Ask{Class: wire.ClassCH}, false},
		{"class", "CH", serve.Ask{Class: wire.ClassCH}, true},
		{"class", "CH", serve.Ask{Class: wire.ClassANY}, false},
		{"transfer", "", serve.Ask{Type: wire.TypeAXFR}, true},
		{"transfer", "", serve.Ask{Type: wire.TypeIXFR}, true},
		{"transfer", "", serve.Ask{Type: wire.TypeANY}, false},
		{"transfer", "", serve.Ask{Type: wire.TypeSOA}, false},
	} {
		m, err := kind(t, c.matcher).Make(&Env{}, c.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Match(&serve.Request{Ask: c.ask}); got != c.want {
			t.Errorf("%s %s on class %d, type %d: %v", c.matcher, c.args, c.ask.Class, c.ask.Type, got)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, c := range [][2]string{{"class", ""}, {"class", "in"}, {"class", "HS"}} {
		if _, err := kind(t, c[0]).Make(&Env{}, c[1]); err == nil {
			t.Errorf("%s takes %q", c[0], c[1])
		}
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] || k.Doc == "" || k.Make == nil {
			t.Errorf("row %s: a name of its own, words, and Make", k.Name)
		}
		seen[k.Name] = true
	}
}

func kind(t *testing.T, name string) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no matcher %s", name)
	return Kind{}
}
