package sink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dnstap "github.com/dnstap/golang-dnstap"
	framestream "github.com/farsightsec/golang-framestream"
	"github.com/miekg/dns"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/waymark-dns/waymark/internal/qlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows are n rows whose names count from first.
func rows(first, n int) []qlog.Row {
	all := make([]qlog.Row, n)
	for i := range all {
		all[i] = qlog.Row{
			Time:     1_700_000_000_123_456 + int64(first+i),
			Sender:   qlog.Sender{Client: "192.0.2.7", ClientPort: 5353, Protocol: "udp", Listener: "udp://127.0.0.1:53"},
			Question: qlog.Question{Name: rowName(first + i), Type: "A", Class: "IN"},
			Outcome:  qlog.Outcome{Rcode: "NOERROR", Flags: "RD RA", Source: "cache", Answers: "198.51.100.1 198.51.100.2"},
			Latency:  1500, QuerySize: 40, Size: 80,
		}
	}
	return all
}

func rowName(n int) string { return fmt.Sprintf("n%05d.example.", n) }

// names are the names of rows.
func names(first, n int) []string {
	all := []string{}
	for i := range n {
		all = append(all, rowName(first+i))
	}
	return all
}

// serve talks to one connection of a sink and tells the name of each row that comes.
type serve func(conn net.Conn, got func(name string)) error

// peer is the far end of a sink, in memory.
type peer struct {
	serve serve
	work  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	down   bool       // nobody can connect
	stuck  bool       // connections are taken and not served
	served []net.Conn
	names  []string
}

func (p *peer) dial(_ context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errors.New("nobody is there")
	}
	near, far := net.Pipe()
	p.served = append(p.served, far)
	if !p.stuck {
		p.work.Go(func() {
			_ = p.serve(far, p.got) // any end is an end
			_ = far.Close()
		})
	}
	return near, nil
}

func (p *peer) got(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, name)
}

// have is what came so far.
func (p *peer) have() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.names...)
}

// set goes away, closing all connections, or comes back.
func (p *peer) set(down, stuck bool) {
	p.mu.Lock()
	p.down, p.stuck = down, stuck
	served := p.served
	p.served = nil
	p.mu.Unlock()
	for _, c := range served {
		_ = c.Close()
	}
}

// end frees what the peer has.
func (p *peer) end() {
	p.set(true, false)
	p.work.Wait()
}

func (p *peer) env() Env { return Env{Wall: time.Now, Dial: p.dial} }

func open(t *testing.T, c Config, env Env) *Sink {
	t.Helper()
	if problems := c.Check(); len(problems) > 0 {
		t.Fatalf("the configuration has problems: %v", problems)
	}
	s, err := Open(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeSink(t *testing.T, s *Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %d rows %q..., want %d %q...", len(got), got[:min(5, len(got))], len(want), want[:min(5, len(want))])
	}
}

// nameOf reads a row in JSON.
func nameOf(line []byte) (string, error) {
	var row qlog.Row
	err := json.Unmarshal(line, &row)
	return row.Name, err
}

func serveLines(conn net.Conn, got func(string)) error {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		name, err := nameOf(lines.Bytes())
		if err != nil {
			return err
		}
		got(name)
	}
	return nil
}

// serveCounted reads messages with their length in front (RFC 6587 §3.4.1).
func serveCounted(conn net.Conn, got func(string)) error {
	r := bufio.NewReader(conn)
	for {
		var n int
		if _, err := fmt.Fscanf(r, "%d ", &n); err != nil {
			return err
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(r, message); err != nil {
			return err
		}
		if err := syslogName(message, got); err != nil {
			return err
		}
	}
}

// serveDatagrams reads one message a write, as a pipe hands them on.
func serveDatagrams(conn net.Conn, got func(string)) error {
	b := make([]byte, 1<<16)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return err
		}
		if err := syslogName(b[:n], got); err != nil {
			return err
		}
	}
}

func syslogName(message []byte, got func(string)) error {
	_, text, ok := bytes.Cut(message, []byte(" query - "))
	if !ok || !bytes.HasPrefix(message, []byte("<30>1 ")) {
		return fmt.Errorf("no message of syslog: %q", message)
	}
	name, err := nameOf(text)
	if err == nil {
		got(name)
	}
	return err
}

func serveDnstap(conn net.Conn, got func(string)) error {
	r, err := framestream.NewReader(conn, &framestream.ReaderOptions{ContentTypes: [][]byte{[]byte(contentType)}, Bidirectional: true})
	if err != nil {
		return err
	}
	return eachFrame(r, func(m *dnstap.Message) error {
		var msg dns.Msg
		if err := msg.Unpack(m.ResponseMessage); err != nil {
			return err
		}
		got(msg.Question[0].Name)
		return nil
	})
}

func eachFrame(r *framestream.Reader, do func(*dnstap.Message) error) error {
	b := make([]byte, 1<<16)
	for {
		n, err := r.ReadFrame(b)
		if err != nil {
			return err
		}
		var d dnstap.Dnstap
		if err := proto.Unmarshal(b[:n], &d); err != nil {
			return err
		}
		if err := do(d.Message); err != nil {
			return err
		}
	}
}

// answer is what a fake of ClickHouse says to an insert; close: nothing.
type answer struct {
	status int
	header string
	close  bool
}

// serveInserts is ClickHouse; judge sees each insert before it is taken.
func serveInserts(judge func(req *http.Request, body []byte) answer) serve {
	return func(conn net.Conn, got func(string)) error {
		r := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return err
			}
			a := answer{status: http.StatusOK}
			if judge != nil {
				a = judge(req, body)
			}
			if a.close {
				return nil
			}
			if a.status == http.StatusOK && a.header == "" {
				for line := range bytes.Lines(body) {
					name, err := nameOf(line)
					if err != nil {
						return err
					}
					got(name)
				}
			}
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d x\r\n%sContent-Length: 0\r\n\r\n", a.status, a.header); err != nil {
				return err
			}
		}
	}
}

// memory is a writer that tells the names of lines.
type memory struct{ bytes.Buffer }

func (m *memory) names(t *testing.T) (all []string) {
	t.Helper()
	return lineNames(t, m.Bytes())
}

func lineNames(t *testing.T, text []byte) []string {
	t.Helper()
	all := []string{}
	for line := range bytes.Lines(text) {
		name, err := nameOf(line)
		if err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, name)
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// config is a configuration of a kind with small numbers.
func config(kind, to string) Config {
	c := Default()
	c.Kind, c.To, c.Queue = kind, to, 64<<10
	if strings.HasPrefix(to, "/") {
		c.To, c.File = "", to
	}
	c.Dnstap.Identity = "ns1.example"
	return c
}
