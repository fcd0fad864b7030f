package sink

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// table is a configuration of ClickHouse with batches of n rows.
func table(n int) Config {
	c := config("clickhouse", "http://192.0.2.1:8123")
	c.ClickHouse.Rows = n
	return c
}

func TestInsert(t *testing.T) {
	for _, compress := range Compressions() {
		t.Run(compress, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard *http.Request
				var got []string
				p := &peer{serve: serveInserts(func(req *http.Request, body []byte) answer {
					heard = req
					got = append(got, lineNames(t, unpacked(t, req.Header.Get("Content-Encoding"), body))...)
					return answer{status: 200, header: "X-Seen: 1\r\n"}
				})}
				c := table(100)
				c.ClickHouse.User, c.ClickHouse.Compress = "writer", compress
				c.ClickHouse.PasswordFile = filepath.Join(t.TempDir(), "password")
				if err := os.WriteFile(c.ClickHouse.PasswordFile, []byte("secret word\r\nmore\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				s := open(t, c, p.env())
				s.Put(rows(0, 3))
				closeSink(t, s)
				p.end()
				same(t, got, names(0, 3))
				q := heard.URL.Query()
				if q.Get("query") != "INSERT INTO `default`.`queries` FORMAT JSONEachRow" || len(q.Get("insert_deduplication_token")) != 32 || q.Get("async_insert") != "0" {
					t.Errorf("got %v", q)
				}
				if heard.Header.Get("X-ClickHouse-User") != "writer" || heard.Header.Get("X-ClickHouse-Key") != "secret word" || strings.Contains(heard.URL.String(), "secret") {
					t.Errorf("got %v with %v", heard.URL, heard.Header)
				}
			})
		})
	}
}

func unpacked(t *testing.T, encoding string, body []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	var err error
	switch encoding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer d.Close()
			r = d
		}
	}
	if err == nil {
		body, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// inserts keeps the tokens of inserts and how many rows each had.
type inserts struct {
	mu     sync.Mutex
	tokens []string
	sizes  []int
	next   []answer // for the first ones; then all is well
}

func (i *inserts) judge(req *http.Request, body []byte) answer {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens = append(i.tokens, req.URL.Query().Get("insert_deduplication_token"))
	i.sizes = append(i.sizes, bytes.Count(body, []byte("\n")))
	if len(i.next) == 0 {
		return answer{status: 200}
	}
	a := i.next[0]
	i.next = i.next[1:]
	return a
}

// seen is the sizes so far.
func (i *inserts) seen() []int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.sizes)
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in inserts
		p := &peer{serve: serveInserts(in.judge)}
		c := table(10)
		s := open(t, c, p.env())
		s.Put(rows(0, 25)) // two are full, the third waits
		synctest.Wait()
		if !slices.Equal(in.seen(), []int{10, 10}) {
			t.Errorf("at once: %v", in.seen())
		}
		time.Sleep(c.ClickHouse.Interval - time.Second)
		s.Put(rows(25, 2))
		synctest.Wait()
		if len(in.seen()) != 2 {
			t.Errorf("before the interval: %v", in.seen())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(in.seen(), []int{10, 10, 7}) {
			t.Errorf("after the interval: %v", in.seen())
		}
		closeSink(t, s)
		p.end()
		same(t, p.have(), names(0, 27))
	})
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  answer
		dropped bool // not sent again
	}{
		{"none", answer{close: true}, false},
		{"server error", answer{status: 500}, false},
		{"no such table", answer{status: 404, header: "X-ClickHouse-Exception-Code: 60\r\n"}, false},
		{"wrong password", answer{status: 403, header: "X-ClickHouse-Exception-Code: 516\r\n"}, false},
		{"elsewhere", answer{status: 307, header: "Location: http://192.0.2.2/\r\n"}, false},
		{"an exception behind 200", answer{status: 200, header: "X-ClickHouse-Exception-Code: 241\r\n"}, false},
		{"malformed", answer{status: 400, header: "X-ClickHouse-Exception-Code: 27\r\n"}, true},
		{"too large", answer{status: 413}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := inserts{next: []answer{c.answer}}
				p := &peer{serve: serveInserts(in.judge)}
				var log bytes.Buffer
				env := p.env()
				env.Log = slog.New(slog.NewTextHandler(&log, nil))
				s := open(t, table(10), env)
				s.Put(rows(0, 10))
				time.Sleep(time.Minute)
				s.Put(rows(10, 10))
				closeSink(t, s)
				p.end()
				want, got := names(0, 20), s.Stats()
				if c.dropped {
					want = names(10, 10)
				} else if in.tokens[0] != in.tokens[1] {
					t.Error("the batch had another token the second time")
				}
				if in.tokens[len(in.tokens)-1] == in.tokens[0] {
					t.Error("two batches have one token")
				}
				same(t, p.have(), want)
				if got.Errors != 1 || got.Sent != uint64(len(want)) || got.Dropped != uint64(20-len(want)) {
					t.Errorf("got %+v", got)
				}
				if log.Len() == 0 || strings.Contains(log.String(), "example") || strings.Contains(log.String(), "query=") {
					t.Errorf("the log says %s", log.String())
				}
			})
		})
	}
}

func TestTLS(t *testing.T) {
	var in inserts
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		in.judge(req, body)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ca string
		verify   bool
		ok       bool
	}{{"known", ca, true, true}, {"unknown", "", true, false}, {"not verified", "", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			conf := config("clickhouse", server.URL)
			conf.ClickHouse.CA, conf.ClickHouse.Verify = c.ca, c.verify
			failed := make(chan string, 10)
			s := open(t, conf, Env{Wall: time.Now, Log: slog.New(slog.NewTextHandler(lines(failed), nil))})
			s.Put(rows(0, 1))
			if c.ok {
				closeSink(t, s)
				return
			}
			s.cancelAfter(failed)
			if err := s.Close(); err == nil || s.Stats().Sent > 0 {
				t.Errorf("a server that nobody vouches for was told: %v %+v", err, s.Stats())
			}
		})
	}
	if len(in.sizes) != 2 {
		t.Errorf("got %d inserts", len(in.sizes))
	}
}

// lines is a writer to a channel.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// cancelAfter has Close give up once something was logged.
func (s *Sink) cancelAfter(logged chan string) {
	go func() {
		<-logged
		s.cancel()
	}()
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"reading the password":           func(c *Config) { c.ClickHouse.PasswordFile = filepath.Join(dir, "none") },
		"reading certificates":           func(c *Config) { c.ClickHouse.CA = filepath.Join(dir, "none") },
		"has none":                       func(c *Config) { c.ClickHouse.CA = empty },
		"making the spill folder":        func(c *Config) { c.ClickHouse.Spill = filepath.Join(empty, "spill") },
		"unknown kind":                   func(c *Config) { c.Kind = "kafka" },
		"reading its URL: it is malform": func(c *Config) { c.To = "http://u:secret@h:x/" },
	} {
		c := table(1)
		change(&c)
		s, err := Open(c, Env{Wall: time.Now})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCreateTable(t *testing.T) {
	got := CreateTable(Default().ClickHouse)
	for _, want := range []string{"CREATE TABLE `default`.`queries`", "`time` DateTime64(6, 'UTC')", "`size` UInt16\n)", "non_replicated_deduplication_window"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if m := Manual(); !strings.Contains(m, got) || !strings.Contains(m, "`clickhouse`") {
		t.Errorf("the manual lacks the table: %s", m)
	}
}
