package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

func TestSystem(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"health", "ready", "status", "metrics", "openapi.yaml", "sets", "session", "explain?name=www.example&type=A"} {
		r.want(http.StatusOK, "GET", path, "")
	}
	r.want(http.StatusNoContent, "POST", "sets/ads/reload", "")
	r.want(http.StatusNotFound, "POST", "sets/other/reload", "")
	r.want(http.StatusBadRequest, "GET", "explain?name=a..b", "")
	r.want(http.StatusBadRequest, "GET", "explain?name=a.example&cd=perhaps", "")
	r.want(http.StatusBadRequest, "GET", "explain?nome=a", "")
	r.world.notYet, r.world.reload = errors.New("zones are being loaded"), errors.New("line 3 is wrong")
	r.want(http.StatusServiceUnavailable, "GET", "ready", "")
	if a := r.want(http.StatusUnprocessableEntity, "POST", "reload", ""); !strings.Contains(a.body, "line 3") {
		t.Error(a.body)
	}
	r.want(http.StatusUnprocessableEntity, "POST", "sets/ads/reload", "")
}

// fill puts an answer into the cache.
func (w *world) fill(name string) {
	w.t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, dns.TypeA)
	m.Response = true
	rr, err := dns.NewRR(name + " 300 IN A 192.0.2.1")
	if err != nil {
		w.t.Fatal(err)
	}
	m.Answer = []dns.RR{rr}
	msg, err := m.Pack()
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := wire.ParseName(name)
	if err != nil {
		w.t.Fatal(err)
	}
	k := cache.Key{Name: n, Hash: wire.HashName(n), Type: dns.TypeA, Class: dns.ClassINET}
	w.cache.Put(&k, msg, time.Second, 0)
}

func TestCache(t *testing.T) {
	r := newRig(t, nil)
	for _, n := range []string{"www.example.org.", "a.example.org.", "www.example.net."} {
		r.world.fill(n)
	}
	listed := func(path string) (names []string) {
		t.Helper()
		var got struct{ Entries []entryView }
		r.want(http.StatusOK, "GET", path, "").json(t, &got)
		for _, e := range got.Entries {
			names = append(names, e.Name)
		}
		return names
	}
	var caches struct{ Caches []cacheView }
	r.want(http.StatusOK, "GET", "caches", "").json(t, &caches)
	if len(caches.Caches) != 2 || caches.Caches[0].Entries != 3 {
		t.Fatalf("%+v", caches)
	}
	for path, want := range map[string]int{
		"cache/entries?cache=": 3, "cache/entries": 6, "cache/entries?cache=&name=www.example.org": 1, "cache/entries?cache=&under=example.org": 2,
		"cache/entries?cache=&type=AAAA": 0, "cache/entries?cache=&limit=2": 2,
	} {
		if got := listed(path); len(got) != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, path := range []string{"cache/entries", "cache/entries?all=true&name=x", "cache/entries?all=perhaps", "cache/entries?name=a..b", "cache/entries?nome=x"} {
		r.want(http.StatusBadRequest, "DELETE", path, "")
	}
	r.want(http.StatusNotFound, "DELETE", "cache/entries?cache=third&all=true", "")
	r.want(http.StatusOK, "DELETE", "cache/entries?cache=&under=example.org", "")
	if got := listed("cache/entries?cache="); len(got) != 1 {
		t.Errorf("after a flush: %v", got)
	}
	r.want(http.StatusOK, "DELETE", "cache/entries?all=true", "")
	if got := listed("cache/entries"); len(got) != 0 {
		t.Errorf("after a flush of all: %v", got)
	}
}

func TestUpstreams(t *testing.T) {
	r := newRig(t, nil)
	r.want(http.StatusNoContent, "POST", "upstreams/drain", `{"group":"all","upstream":"udp://192.0.2.53:53","drain":true}`)
	var got struct{ Upstreams []upstreamView }
	r.want(http.StatusOK, "GET", "upstreams", "").json(t, &got)
	if len(got.Upstreams) != 1 || !got.Upstreams[0].Drained || got.Upstreams[0].Name != "udp://192.0.2.53:53" {
		t.Errorf("%+v", got)
	}
	r.want(http.StatusNotFound, "POST", "upstreams/drain", `{"group":"all","upstream":"other","drain":true}`)
	r.want(http.StatusNotFound, "POST", "upstreams/drain", `{"group":"none","upstream":"udp://192.0.2.53:53","drain":true}`)
}

func TestSeriesRoute(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now().Unix()
	r.world.series.Add(now-1, []uint64{7})
	var got seriesView
	r.want(http.StatusOK, "GET", "stats/series", "").json(t, &got)
	if len(got.Points) != 1 || got.Points[0].Values[0] != 7 || got.Names[0] != "queries" {
		t.Errorf("%+v", got)
	}
	r.want(http.StatusOK, "GET", fmt.Sprintf("stats/series?step=60&from=%d&until=%d", now-3600, now+60), "").json(t, &got)
	if len(got.Points) != 1 || got.Step != 60 {
		t.Errorf("%+v", got)
	}
	for _, q := range []string{"step=2", "from=yesterday", "until=-1", "til=1"} {
		r.want(http.StatusBadRequest, "GET", "stats/series?"+q, "")
	}
}

// logged notes a query in the log, through a ring as listeners do.
func (w *world) logged(g *qlog.Ring, name, client string) {
	n, err := wire.ParseName(name)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &serve.Request{Client: netip.MustParseAddrPort(client), Peer: &serve.Peer{}, At: time.Second, Note: serve.Note{Source: serve.SourceCache, Size: 50}}
	r.Name, r.Hash, r.Type, r.Class, r.Msg = n, wire.HashName(n), wire.TypeA, wire.ClassIN, make([]byte, 30)
	g.Observe(r)
	g.Flush()
}

func TestLogRoutes(t *testing.T) {
	r := newRig(t, nil)
	g := qlog.NewRing(func() time.Duration { return 2 * time.Second })
	r.world.log.Add(g)
	stream, err := http.NewRequest("GET", r.url+prefix+"log/stream?name=b.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Authorization", "Bearer "+tokens[Read])
	resp, err := http.DefaultClient.Do(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 10 {
		r.world.logged(g, []string{"a.example", "b.example"}[i%2], fmt.Sprintf("192.0.2.%d:53", i%3))
	}
	events := bufio.NewScanner(resp.Body)
	for events.Scan() {
		text, ok := strings.CutPrefix(events.Text(), "data: ")
		if !ok {
			continue
		}
		var row qlog.Row
		if err := json.Unmarshal([]byte(text), &row); err != nil || row.Name != "b.example." {
			t.Errorf("%v: %s", err, text)
		}
		break
	}
	var rows struct{ Rows []qlog.Row }
	if err := r.world.log.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.want(http.StatusOK, "GET", "log", "").json(t, &rows)
	if len(rows.Rows) != 10 {
		t.Fatalf("%d rows", len(rows.Rows))
	}
	r.want(http.StatusOK, "GET", "log?name=a.example&limit=2", "").json(t, &rows)
	if len(rows.Rows) != 2 || rows.Rows[0].Name != "a.example." {
		t.Errorf("%+v", rows)
	}
	var top struct {
		Values []struct {
			Value string
			Count int
		}
	}
	r.want(http.StatusOK, "GET", "log/top?column=client&n=1", "").json(t, &top)
	if len(top.Values) != 1 || top.Values[0].Value != "192.0.2.0" || top.Values[0].Count != 4 {
		t.Errorf("%+v", top)
	}
	var buckets struct{ Buckets []struct{ Count int } }
	r.want(http.StatusOK, "GET", "log/count?step=3600", "").json(t, &buckets)
	if len(buckets.Buckets) != 1 || buckets.Buckets[0].Count != 10 {
		t.Errorf("%+v", buckets)
	}
	for format, begins := range map[string]string{"json": "{", "csv": "time,", "parquet": "PAR1"} {
		if a := r.want(http.StatusOK, "GET", "log/export?name=a.example&format="+format, ""); !strings.HasPrefix(a.body, begins) {
			t.Errorf("%s: %.40q", format, a.body)
		}
	}
	for _, path := range []string{"log?nome=x", "log/top?column=nothing", "log/export?format=xml", "log/count?step=0"} {
		r.want(http.StatusBadRequest, "GET", path, "")
	}
	if a := r.want(http.StatusBadRequest, "GET", "log?nmae=x", ""); !strings.Contains(a.body, "name") {
		t.Errorf("the nearest key is not told: %s", a.body)
	}
	r.want(http.StatusBadRequest, "DELETE", "log", "")
	r.want(http.StatusBadRequest, "DELETE", "log?client=192.0.2.1&name=x", "")
	if a := r.want(http.StatusOK, "DELETE", "log?client=192.0.2.1", ""); !strings.Contains(a.body, "3") {
		t.Errorf("deleted: %s", a.body)
	}
	r.want(http.StatusOK, "GET", "log", "").json(t, &rows)
	if len(rows.Rows) != 7 {
		t.Errorf("%d rows are left", len(rows.Rows))
	}
}

func TestNoLog(t *testing.T) {
	r := newRig(t, nil)
	log := r.world.log
	r.world.log = nil
	for _, path := range []string{"log", "log/top?column=name", "log/count", "log/stream", "log/export"} {
		r.want(http.StatusNotFound, "GET", path, "")
	}
	r.world.log = log
}

func TestConfig(t *testing.T) {
	r := newRig(t, nil)
	got := r.want(http.StatusOK, "GET", "config", "")
	tag := got.head.Get("ETag")
	if !strings.Contains(got.body, "udp://127.0.0.1:53") || tag == "" {
		t.Fatalf("%v %s", got.head, got.body)
	}
	if a := r.want(http.StatusOK, "POST", "config/check", "wrong"); !strings.Contains(a.body, "make it right") || strings.Contains(a.body, `"ok":true`) {
		t.Error(a.body)
	}
	const next = "listen: [udp://127.0.0.1:5300]\n"
	r.want(http.StatusPreconditionRequired, "PUT", "config", next)
	r.head = map[string]string{"If-Match": `"0000"`}
	r.want(http.StatusPreconditionFailed, "PUT", "config", next)
	r.head["If-Match"] = tag
	if a := r.want(http.StatusUnprocessableEntity, "PUT", "config", "\nwrong"); !strings.Contains(a.body, `"line":2`) {
		t.Error(a.body)
	}
	r.want(http.StatusBadRequest, "PUT", "config?confirm=never", next)
	r.head["Content-Type"] = "application/x-www-form-urlencoded" // as curl has it
	r.want(http.StatusOK, "PUT", "config?confirm=600&comment=test", next)
	delete(r.head, "Content-Type")
	tag = r.want(http.StatusOK, "GET", "config", "").head.Get("ETag")
	r.head["If-Match"] = tag
	r.want(http.StatusConflict, "PUT", "config", "listen: [udp://127.0.0.1:5301]\n")
	r.want(http.StatusOK, "POST", "config/confirm", `{"id":0}`)
	r.want(http.StatusConflict, "POST", "config/confirm", `{"id":0}`)
	var list struct{ Versions []struct{ ID int } }
	r.want(http.StatusOK, "GET", "config/history", "").json(t, &list)
	if len(list.Versions) != 2 {
		t.Fatalf("%+v", list)
	}
	if a := r.want(http.StatusOK, "GET", "config/diff", ""); !strings.Contains(a.body, "5300") {
		t.Error(a.body)
	}
	r.want(http.StatusOK, "GET", fmt.Sprintf("config/history/%d", list.Versions[0].ID), "")
	r.want(http.StatusNotFound, "GET", "config/history/99", "")
	r.want(http.StatusNotFound, "GET", "config/history/x", "")
	r.head = nil
	r.want(http.StatusOK, "POST", "config/rollback", `{"id":0}`)
	if a := r.want(http.StatusOK, "GET", "config", ""); strings.Contains(a.body, "5300") {
		t.Error(a.body)
	}
	r.world.reload = errors.New("the port is taken")
	r.head = map[string]string{"If-Match": "*"}
	if a := r.want(http.StatusUnprocessableEntity, "PUT", "config", next); !strings.Contains(a.body, "port is taken") {
		t.Error(a.body)
	}
}
