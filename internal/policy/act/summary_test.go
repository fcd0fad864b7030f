package act

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// logged is an environment with a log in text, without times, and a clock that
// stands at one second.
func logged(level slog.Level) (*Env, *bytes.Buffer) {
	var b bytes.Buffer
	e := plainEnv()
	e.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	e.Now = func() time.Duration { return time.Second }
	return e, &b
}

func fails(*serve.Request) policy.Next { return policy.Fail }

func TestSummary(t *testing.T) {
	address := answers(t, wire.NXDomain, 0)
	for _, c := range []struct {
		name, args string
		rest       doing
		want       string // without uqid
	}{
		{"a response", "", address, `level=INFO msg="query summary" client=192.0.2.7 qname=www.example. qtype=28 qclass=1 rcode=3 elapsed=750ms`},
		{"a title", " home ", address, `level=INFO msg=home client=192.0.2.7 qname=www.example. qtype=28 qclass=1 rcode=3 elapsed=750ms`},
		{"no response: no code", "", func(*serve.Request) policy.Next { return policy.Go }, `level=INFO msg="query summary" client=192.0.2.7 qname=www.example. qtype=28 qclass=1 elapsed=750ms`},
		{"a failure", "", fails, `level=INFO msg="query summary" client=192.0.2.7 qname=www.example. qtype=28 qclass=1 elapsed=750ms error="a rule could not do its work"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, log := logged(slog.LevelInfo)
			r := at(asks(t, "www.example.", dns.TypeAAAA), 250*time.Millisecond)
			done(t, r, rule(made(t, e, "query_summary", c.args)), rule(c.rest))
			before, rest, _ := strings.Cut(strings.TrimSpace(log.String()), "uqid=")
			id, after, _ := strings.Cut(rest, " ")
			if got := before + after; got != c.want || id == "" {
				t.Errorf("logged %s\nwant %s", log, c.want)
			}
		})
	}
}

func TestDebugPrint(t *testing.T) {
	e, log := logged(slog.LevelInfo)
	printed := func(text string) string {
		text = strings.ReplaceAll(text, `\n`, "\n")
		return strings.ReplaceAll(text, `\\`, `\`)
	}
	r := asks(t, "www.example.", dns.TypeA)
	a := rule(made(t, e, "debug_print", ""))
	response := answers(t, wire.NoError, 0, "www.example. 60 IN CNAME a.example.\na.example. 60 IN AAAA 2001:db8::1", "example. 60 IN MX 10 a.example.", `a.example. 60 CH TXT "b"`)
	done(t, r, a, rule(response), rule(made(t, e, "debug_print", "seen")))
	for _, want := range []string{
		`level=INFO msg="debug print" query=";; id `, ", flags 0100, code NOERROR\n;; question\nwww.example. IN A\n",
		`level=INFO msg=seen query=`, `level=INFO msg=seen response=`,
		", flags 8100, code NOERROR\n;; question\nwww.example. IN A\n;; answer\nwww.example. 60 IN CNAME a.example.\na.example. 60 IN AAAA 2001:db8::1\n" +
			";; authority\nexample. 60 IN MX \\# 13 000a0161076578616d706c6500\n;; additional\na.example. 60 CH TXT \\# 2 0162\n",
	} {
		if got := printed(log.String()); !strings.Contains(got, want) {
			t.Errorf("not in the log: %s\nlog:\n%s", want, got)
		}
	}
	if n := strings.Count(log.String(), "level="); n != 3 {
		t.Errorf("%d lines, want the query twice and the response once", n)
	}
}

// Where lines of that level are not wanted nothing is made for them.
func TestNoLog(t *testing.T) {
	for _, name := range []string{"query_summary", "debug_print"} {
		e, log := logged(slog.LevelWarn)
		a := rule(made(t, e, name, ""))
		r := asks(t, "www.example.", dns.TypeA)
		answers(t, wire.NoError, 0)(r)
		var f serve.Frame
		work := func() {
			a.Do.Do(r)
			if a.After != nil {
				a.After.After(r, &f)
			}
		}
		work()
		if log.Len() > 0 {
			t.Errorf("%s: logged %s", name, log)
		}
		if !raceDetector {
			if n := testing.AllocsPerRun(100, work); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
		rule(made(t, plainEnv(), name, "")).Do.Do(r) // without a log at all
	}
}
