package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

const setsProgram = `
plugins:
  - {tag: keep, type: cache, args: {size: 1024}}
  - {tag: names, type: domain_set, args: {files: [FILE], auto_reload: true}}
  - {tag: up, type: forward, args: {upstreams: [{tag: one, addr: UP0}]}}
  - tag: main
    type: sequence
    args:
      - exec: metrics_collector all
      - {matches: qname $names, exec: reject 3}
      - exec: $keep
      - {matches: has_resp, exec: accept}
      - exec: $up
`

// withSets is a running server with one set in a file.
func withSets(t *testing.T) (r *running, file string) {
	file = filepath.Join(t.TempDir(), "names.txt")
	write(t, file, "bad.example\n")
	s := level2(t, strings.ReplaceAll(setsProgram, "FILE", file), newOther(t, gives(t, "600 A 192.0.2.1")))
	s.plan.API.HTTP = "127.0.0.1:0"
	return s.run(nil), file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// call asks the API.
func (r *running) call(method, path string) (code int, body string) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.api.Addr()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// blocked tells which names are in the set.
func (r *running) blocked(names ...string) string {
	r.t.Helper()
	var all []string
	for _, n := range names {
		if r.ask(n, dns.TypeA).Rcode == dns.RcodeNameError {
			all = append(all, n)
		}
	}
	return strings.Join(all, " ")
}

// A set is read anew by the API, by a command and when its file changes; one that
// cannot be read stays as it was.
func TestSetsReload(t *testing.T) {
	r, file := withSets(t)
	names := []string{"bad.example", "worse.example"}
	if got := r.blocked(names...); got != "bad.example" {
		t.Fatalf("at first: %s", got)
	}
	write(t, file, "worse.example\n")
	if code, body := r.call("POST", "/plugins/names/reload"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if got := r.blocked(names...); got != "worse.example" {
		t.Errorf("behind the API: %s", got)
	}
	write(t, file, "bad.example\nworse.example\n")
	if text, err := r.setsCommand(t.Context(), []string{"reload", "names"}); err != nil || text != "1 sets read" {
		t.Errorf("%s, %v", text, err)
	}
	if got := r.blocked(names...); got != "bad.example worse.example" {
		t.Errorf("behind the command: %s", got)
	}
	write(t, file, "two words are an error\n")
	if _, err := r.setsCommand(t.Context(), []string{"reload"}); err == nil {
		t.Error("a file that cannot be read is no error")
	}
	if got := r.blocked(names...); got != "bad.example worse.example" {
		t.Errorf("behind the error: %s", got)
	}
	write(t, file, "")
	r.await("the change of the file", func() bool { return r.blocked(names...) == "" })
	if text, err := r.setsCommand(t.Context(), []string{"list"}); err != nil || !strings.Contains(text, "names  domain_set  0") {
		t.Errorf("%s, %v", text, err)
	}
	for _, args := range [][]string{nil, {"reload", "none"}, {"list", "x"}, {"drop"}} {
		if text, err := r.setsCommand(t.Context(), args); err == nil {
			t.Errorf("%q: %s", args, text)
		}
	}
}

// The API has the routes and the names of metrics that monitoring looks for.
func TestAPI(t *testing.T) {
	r, _ := withSets(t)
	for range 2 {
		r.ask("www.example", dns.TypeA)
	}
	_, metrics := r.call("GET", "/metrics")
	for _, want := range []string{
		`mosdns_cache_query_total{tag="keep"} 2`, `mosdns_cache_hit_total{tag="keep"} 1`, `mosdns_cache_size_current{tag="keep"} 1`,
		`mosdns_forward_query_total{tag="up",upstream="one"} 1`, `mosdns_forward_response_latency_millisecond_count{tag="up",upstream="one"} 1`,
		`mosdns_metrics_collector_query_total{name="all"} 2`, `mosdns_metrics_collector_response_latency_millisecond_count{name="all"} 2`,
		`waymark_set_rules{set="names"} 1`, "go_goroutines", "waymark_queries_total",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	if code, body := r.call("GET", "/plugins/keep/flush"); code != http.StatusOK {
		t.Errorf("flush: %d %s", code, body)
	}
	if _, metrics = r.call("GET", "/metrics"); !strings.Contains(metrics, `mosdns_cache_size_current{tag="keep"} 0`) {
		t.Error("the cache is not empty")
	}
	code, body := r.call("GET", "/nothing")
	if code != http.StatusOK || !strings.Contains(body, "GET /plugins/keep/dump") || !strings.Contains(body, "POST /plugins/names/reload") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := r.call("GET", "/debug/pprof/cmdline"); code != http.StatusOK {
		t.Errorf("profiles: %d", code)
	}
}

// Caches of programs are dumped when the server stops and loaded when it starts.
func TestLazyDump(t *testing.T) {
	o := newOther(t, counted(t, 600))
	file := filepath.Join(t.TempDir(), "dump")
	start := func() *running {
		text := strings.ReplaceAll(lazyProgram, "lazy_cache_ttl: 86400", fmt.Sprintf("dump_file: %q", file))
		return level2(t, text, o).run(nil)
	}
	r := start()
	r.ask("www.example", dns.TypeA)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start()
	if data, _ := told(r.ask("www.example", dns.TypeA)); data != "192.0.2.1 " || o.asked.Load() != 1 {
		t.Errorf("after the restart: %s, asked %d times", data, o.asked.Load())
	}
}
