package sink

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
)

var _ qlog.Sink = (*Sink)(nil)

// trials is every kind of sink that has a peer.
var trials = []struct {
	name   string
	config Config
	serve  serve
}{
	{"dnstap over unix", config("dnstap", "unix:///run/tap.sock"), serveDnstap},
	{"dnstap over tcp", config("dnstap", "tcp://192.0.2.1:6000"), serveDnstap},
	{"syslog over udp", config("syslog", "udp://192.0.2.1:514"), serveDatagrams},
	{"syslog over tcp", config("syslog", "tcp://192.0.2.1:601"), serveCounted},
	{"syslog to the system", config("syslog", "unix:///dev/log"), serveDatagrams},
	{"json over tcp", config("json", "tcp://192.0.2.1:6000"), serveLines},
	{"json over unix", config("json", "unix:///run/json.sock"), serveLines},
	{"clickhouse", config("clickhouse", "http://192.0.2.1:8123"), serveInserts(nil)},
}

// each runs a test over every kind, in a bubble of its own: time takes no time, and a
// goroutine that is left over fails the test.
func each(t *testing.T, do func(t *testing.T, c Config, p *peer)) {
	tried := map[string]bool{}
	for _, k := range trials {
		tried[k.config.Kind] = true
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{serve: k.serve}
				do(t, k.config, p)
				p.end()
			})
		})
	}
	for _, k := range Kinds() {
		if !tried[k.Name] {
			t.Errorf("no trial has the kind %s", k.Name)
		}
	}
}

func TestSends(t *testing.T) {
	each(t, func(t *testing.T, c Config, p *peer) {
		s := open(t, c, p.env())
		mine := rows(0, 3)
		s.Put(mine)
		clear(mine) // they are the caller's again
		time.Sleep(time.Minute)
		same(t, p.have(), names(0, 3))
		s.Put(rows(3, 2))
		closeSink(t, s)
		synctest.Wait()
		same(t, p.have(), names(0, 5))
		s.Put(rows(5, 1))
		got := s.Stats()
		if want := (Stats{Sent: 5, Dropped: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestPeerComesBack(t *testing.T) {
	each(t, func(t *testing.T, c Config, p *peer) {
		p.set(true, false)
		s := open(t, c, p.env())
		s.Put(rows(0, 3))
		time.Sleep(5 * time.Minute)
		away := s.Stats()
		if away.Connected || away.Errors < 5 || away.Errors > 50 || away.Sent > 0 || away.Queued == 0 {
			t.Errorf("while the peer is away: %+v", away)
		}
		p.set(false, false)
		time.Sleep(time.Minute)
		same(t, p.have(), names(0, 3))
		if back := s.Stats(); !back.Connected || back.Sent != 3 || back.Queued != 0 || back.Dropped != 0 {
			t.Errorf("when the peer is back: %+v", back)
		}
		p.set(false, false) // connections are lost
		synctest.Wait()
		before := s.Stats().Errors
		s.Put(rows(3, 3))
		time.Sleep(time.Minute)
		same(t, p.have(), names(0, 6))
		// Over a stream it is seen before anything is lost on the way.
		if after := s.Stats().Errors; after != before && !strings.HasPrefix(c.To, "udp:") && c.To != "unix:///dev/log" {
			t.Errorf("%d errors, %d before", after, before)
		}
		closeSink(t, s)
	})
}

// A peer that takes connections and reads nothing costs rows, never time.
func TestFullQueue(t *testing.T) {
	each(t, func(t *testing.T, c Config, p *peer) {
		p.set(false, true)
		s := open(t, c, p.env())
		begun := time.Now()
		for i := range 100 {
			s.Put(rows(100*i, 100))
			synctest.Wait()
		}
		if !time.Now().Equal(begun) {
			t.Errorf("Put took %v", time.Since(begun))
		}
		full := s.Stats()
		if full.Dropped == 0 || full.Dropped >= 10_000 || full.Queued > int(c.Queue) || full.Queued < int(c.Queue)/2 {
			t.Errorf("with a full queue of %d: %+v", c.Queue, full)
		}
		p.set(false, false)
		time.Sleep(5 * time.Minute)
		if after := s.Stats(); after.Queued != 0 || after.Sent+after.Dropped != 10_000 || uint64(len(p.have())) != after.Sent {
			t.Errorf("got %d rows with %+v", len(p.have()), after)
		}
		sent := s.Stats().Sent
		s.Put(rows(10_000, 1)) // there is room again
		closeSink(t, s)
		if after := s.Stats(); after.Sent != sent+1 {
			t.Errorf("got %+v, %d sent before", after, sent)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		down, stuck bool
	}{{"nobody is there", true, false}, {"a peer that does not read", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, conf Config, p *peer) {
				p.set(c.down, c.stuck)
				s := open(t, conf, p.env())
				s.Put(rows(0, 7))
				synctest.Wait()
				begun := time.Now()
				err := s.Close()
				if took := time.Since(begun); took > drainLimit+graceLimit {
					t.Errorf("Close took %v", took)
				}
				if err == nil || !strings.Contains(err.Error(), "7 rows were not sent") {
					t.Errorf("got %v", err)
				}
				if again := s.Close(); again != err {
					t.Errorf("the second time: %v", again)
				}
				if got := s.Stats(); got.Dropped != 7 || got.Queued != 0 {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// A peer that comes back while Close waits gets everything.
func TestCloseDrains(t *testing.T) {
	each(t, func(t *testing.T, c Config, p *peer) {
		p.set(true, false)
		s := open(t, c, p.env())
		s.Put(rows(0, 50))
		time.Sleep(10 * time.Minute) // pauses are long by now
		time.AfterFunc(drainLimit/2, func() { p.set(false, false) })
		closeSink(t, s)
		synctest.Wait()
		same(t, p.have(), names(0, 50))
	})
}

func TestStdout(t *testing.T) {
	var out memory
	s := open(t, config("json", "stdout"), Env{Wall: time.Now, Stdout: &out})
	s.Put(rows(0, 100))
	closeSink(t, s)
	same(t, out.names(t), names(0, 100))
}

// A pipe that nobody reads cannot be broken off: Close says so, and returns.
func TestStuckStdout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := open(t, config("json", "stdout"), Env{Wall: time.Now, Stdout: w})
		s.Put(rows(0, 1))
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "still writing") {
			t.Errorf("got %v", err)
		}
		_ = r.Close() // ends the write
		<-s.done
	})
}

func TestSyslogSockets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sockets of datagrams in the file system")
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	local, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	for to, conn := range map[string]net.PacketConn{"udp://" + udp.LocalAddr().String(): udp, "unix://" + path: local} {
		s := open(t, config("syslog", to), Env{Wall: time.Now})
		s.Put(rows(0, 3))
		closeSink(t, s) // they are in the socket now
		got := []string{}
		b := make([]byte, 1<<16)
		for range 3 {
			n, _, err := conn.ReadFrom(b)
			if err == nil {
				err = syslogName(b[:n], func(name string) { got = append(got, name) })
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		same(t, got, names(0, 3))
		_ = conn.Close()
	}
}

// RFC 5424 §6.
func TestSyslogMessage(t *testing.T) {
	s := &syslog{tail: []byte(" ns1 waymark 7 query - ")}
	got := string(s.encode(nil, &rows(0, 1)[0]))
	if want := "<30>1 2023-11-14T22:13:20.123456Z ns1 waymark 7 query - {\"time\":"; !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s...", got, want)
	}
}
