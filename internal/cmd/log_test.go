package cmd

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/qlog/search"
)

// The flags are the keys of the API: same names, examples and texts, in one order.
func TestLogFlagsAreKeys(t *testing.T) {
	fields := append(reflect.VisibleFields(reflect.TypeFor[logFilter]()), reflect.VisibleFields(reflect.TypeFor[logOrder]())...)
	keys := search.Keys()
	if len(fields) != len(keys) {
		t.Fatalf("%d flags, %d keys", len(fields), len(keys))
	}
	for i, f := range fields {
		k := keys[i]
		if strings.ToLower(f.Name) != k.Name || f.Tag.Get("help") != k.Help || f.Type.Kind() != reflect.Pointer && f.Tag.Get("placeholder") != k.Example {
			t.Errorf("flag %s is %s, the key %+v", f.Name, f.Tag, k)
		}
	}
}

// Every flag reaches the filter under its own name.
func TestLogFilterValues(t *testing.T) {
	var f logFilter
	yes := true
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Pointer {
			v.Field(i).Set(reflect.ValueOf(&yes))
		} else {
			v.Field(i).Set(reflect.ValueOf([]string{v.Type().Field(i).Tag.Get("placeholder")}))
		}
	}
	values := f.values()
	(&logOrder{"oldest", "100", "1790000000000000-1"}).order(values)
	for _, k := range search.Keys() {
		if got := values[k.Name]; len(got) != 1 || got[0] != k.Example {
			t.Errorf("key %s gets %q, want %q", k.Name, got, k.Example)
		}
	}
}

// The page about the log names what there is, as it is.
func TestLogManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/QUERYLOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range search.Keys() {
		if row := "| `" + k.Name + "` | `" + k.Example + "` | " + k.Help + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/QUERYLOG.md lacks the row\n%s", row)
		}
	}
	for _, c := range append(search.Columns(), "time") {
		if !regexp.MustCompile("(?m)^\\| .*`" + c + "`").Match(page) {
			t.Errorf("docs/QUERYLOG.md does not name the column %s", c)
		}
	}
}

func TestLatencyText(t *testing.T) {
	for us, want := range map[uint32]string{0: "0.000 ms", 31: "0.031 ms", 9999: "9.999 ms", 23456: "23.5 ms", 123456: "123 ms", 3_000_000: "3000 ms"} {
		if got := latency(us); got != want {
			t.Errorf("%d: %s, want %s", us, got, want)
		}
	}
}

// Colours are for terminals: what failed is red, and the line ends without.
func TestLogColours(t *testing.T) {
	for _, c := range []struct {
		rcode, ede string
		colour     string
	}{{"SERVFAIL", "15", "\x1b[31m"}, {"NXDOMAIN", "15", "\x1b[33m"}, {"NXDOMAIN", "", "\x1b[2m"}, {"NOERROR", "3", ""}} {
		var out bytes.Buffer
		p, err := newRowPrinter(&out, false)
		if err != nil {
			t.Fatal(err)
		}
		if p.colour {
			t.Fatal("a buffer is a terminal")
		}
		p.colour = true
		p.add(&qlog.Row{Outcome: qlog.Outcome{Rcode: c.rcode, EDE: c.ede}})
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(out.String(), "\n")
		if c.colour == "" && strings.Contains(line, "\x1b") || !strings.HasPrefix(line, c.colour) || c.colour != "" && !strings.HasSuffix(line, "\x1b[0m\n") {
			t.Errorf("%s: %q", c.rcode, line)
		}
	}
}
