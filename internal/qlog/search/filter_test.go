package search

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("", 3600)
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, zone)
	for _, c := range []struct{ in, want string }{
		{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"},
		{"2026-01-31T12:00:00.5+02:00", "2026-01-31T10:00:00.5Z"},
		{"2026-01-31", "2026-01-30T23:00:00Z"},
		{"2026-01-31 12:00", "2026-01-31T11:00:00Z"},
		{"2026-01-31T12:00:01", "2026-01-31T11:00:01Z"},
		{"14:30", "2026-03-14T13:30:00Z"},
		{"90s", "2026-03-14T14:07:56Z"},
		{"1h", "2026-03-14T13:09:26Z"},
		{"2d", "2026-03-12T14:09:26Z"},
		{"1w1d12h", "2026-03-06T02:09:26Z"},
		{"0s", "2026-03-14T14:09:26Z"},
		{"now", ""}, {"", ""}, {"0", ""}, {"1", ""}, {"-1h", ""}, {"+1h", ""}, {"2026-02-30", ""}, {"25:00", ""}, {"1500-01-01", ""}, {"d", ""}, {"-1d", ""}, {"999999d", ""},
	} {
		us, err := parseTime(c.in, at)
		if c.want == "" {
			if err == nil {
				t.Errorf("%q is %d", c.in, us)
			}
			continue
		}
		want, _ := time.Parse(time.RFC3339Nano, c.want)
		if err != nil || us != want.UnixMicro() {
			t.Errorf("%q is %s, %v, want %s", c.in, time.UnixMicro(us).UTC(), err, c.want)
		}
	}
}

func TestParseFilterErrors(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       string
	}{
		{"nmae", "example.org", "reading filter: nmae=example.org: unknown key; did you mean name?"},
		{"whatever", "1", "reading filter: whatever=1: unknown key"},
		{"client", "192.0.2.1,192.0.2.300", "reading filter: client=192.0.2.300: neither an address nor a prefix"},
		{"from", "yesterday", "reading filter: from=yesterday: not a time such as"},
		{"from", "1h,2h", "reading filter: from=1h,2h: takes one value"},
		{"name", "a..b", "reading filter: name=a..b: not a name: "},
		{"type", "A,AAAAA", "reading filter: type=AAAAA: not a type"},
		{"slower", "50", "reading filter: slower=50: not a duration such as 50ms"},
		{"blocked", "maybe", "reading filter: blocked=maybe: neither true nor false"},
		{"limit", "-1", "reading filter: limit=-1: not a number from 0 to"},
		{"order", "newst", "reading filter: order=newst: neither newest nor oldest; did you mean newest?"},
		{"cursor", "17", "reading filter: cursor=17: not a cursor"},
	} {
		_, err := ParseFilter(map[string][]string{c.key: {c.value}, "source": {"cache"}}, now)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %s", c.key, c.value, err, c.want)
		}
	}
	_, err := ParseFilter(map[string][]string{"from": {"1h"}, "until": {"2h"}}, now)
	var problem *FilterError
	if !errors.As(err, &problem) || problem.Key != "until" {
		t.Errorf("until before from: %v", err)
	}
	_, err = ParseFilter(map[string][]string{"from": {"x"}, "type": {"y"}, "z": {"1"}}, now)
	if err == nil || strings.Count(err.Error(), "reading filter") != 3 {
		t.Errorf("of three problems are told: %v", err)
	}
	if f, err := ParseFilter(map[string][]string{"from": {""}, "name": nil, "type": {" , "}}, now); err != nil || f.From != 0 || f.tests != nil {
		t.Errorf("empty values: %+v, %v", f, err)
	}
}

func TestLastLabels(t *testing.T) {
	for in, want := range map[string]string{
		".": ".", "org.": "org.", "example.org.": "example.org.", "www.example.org.": "example.org.", "a.b.c.d.": "c.d.",
		`a\.b.org.`: `a\.b.org.`, `x.a\.b.org.`: `a\.b.org.`, `x.a\\.org.`: `a\\.org.`, "": "",
	} {
		if got := lastLabels(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		name, top string
		want      bool
	}{
		{"example.org.", "example.org.", true}, {"www.example.org.", "example.org.", true}, {"wwwexample.org.", "example.org.", false},
		{`www\.example.org.`, "example.org.", false}, {`www\\.example.org.`, "example.org.", true}, {"org.", "example.org.", false},
		{".", ".", true}, {"org.", ".", true}, {".", "org.", false},
	} {
		if got := below(c.name, c.top); got != c.want {
			t.Errorf("%s below %s: %v", c.name, c.top, got)
		}
	}
}

// FuzzParseFilter: whatever is asked for, the filter is one that can be used, or
// the error names the key.
func FuzzParseFilter(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Name, k.Example)
		for _, v := range samples[k.Name] {
			f.Add(k.Name, v)
		}
	}
	f.Add("from", "1w2d3h4m5s")
	f.Add("cursor", "9223372036854775807-2147483647")
	f.Add("name", `\000\.\255`)
	f.Add("nmae", "x")
	f.Fuzz(func(t *testing.T, key, value string) {
		filter, err := ParseFilter(map[string][]string{key: {value}}, now)
		if err != nil {
			if !strings.Contains(err.Error(), key+"=") {
				t.Errorf("%q=%q: %v", key, value, err)
			}
			return
		}
		if filter.Limit < 0 || filter.From < 0 || filter.Until < 0 || filter.After.Rows < 0 {
			t.Errorf("%q=%q: %+v", key, value, filter)
		}
		if c := filter.After; c.Rows > 0 {
			if again, ok := parseCursor(c.String()); !ok || again != c {
				t.Errorf("%q: %s", value, c)
			}
		}
		row := randomRow(randomSource())
		filter.Matches(&row)
	})
}

func randomSource() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
