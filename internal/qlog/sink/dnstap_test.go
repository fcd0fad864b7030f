package sink

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	dnstap "github.com/dnstap/golang-dnstap"
	framestream "github.com/farsightsec/golang-framestream"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// frames decodes the data frames of one row.
func frames(t *testing.T, queries bool, row qlog.Row) (all []*dnstap.Dnstap) {
	t.Helper()
	tap := &tap{identity: []byte("ns1"), version: []byte("v"), queries: queries}
	b := tap.encode(nil, &row)
	for len(b) > 0 {
		n := int(b[2])<<8 | int(b[3])
		d := new(dnstap.Dnstap)
		if err := proto.Unmarshal(b[4:4+n], d); err != nil {
			t.Fatal(err)
		}
		all, b = append(all, d), b[4+n:]
	}
	return all
}

func unpack(t *testing.T, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return m
}

func TestDnstapResponse(t *testing.T) {
	row := rows(0, 1)[0]
	row.Flags, row.Rcode, row.EDE, row.Answers = "AA TC RD RA AD CD DO", "BADCOOKIE", "15", "198.51.100.1 2001:db8::1"
	row.Time, row.Latency = 1_700_000_000_999_999, 2
	all := frames(t, false, row)
	if len(all) != 1 {
		t.Fatalf("got %d frames", len(all))
	}
	d, m := all[0], all[0].Message
	if string(d.Identity) != "ns1" || string(d.Version) != "v" || m.GetType() != dnstap.Message_CLIENT_RESPONSE || m.QueryMessage != nil {
		t.Errorf("got %v", d)
	}
	if m.GetSocketFamily() != dnstap.SocketFamily_INET || m.GetSocketProtocol() != dnstap.SocketProtocol_UDP ||
		!net.IP(m.QueryAddress).Equal(net.ParseIP("192.0.2.7")) || m.GetQueryPort() != 5353 {
		t.Errorf("the sender: %v", m)
	}
	if m.GetQueryTimeSec() != 1_700_000_000 || m.GetQueryTimeNsec() != 999_999_000 || m.GetResponseTimeSec() != 1_700_000_001 || m.GetResponseTimeNsec() != 1000 {
		t.Errorf("the times: %v", m)
	}
	msg := unpack(t, m.ResponseMessage)
	if !msg.Response || !msg.Authoritative || !msg.Truncated || !msg.RecursionDesired || !msg.RecursionAvailable || !msg.AuthenticatedData || !msg.CheckingDisabled {
		t.Errorf("flags: %v", msg)
	}
	if opt := msg.IsEdns0(); opt == nil || !opt.Do() || len(opt.Option) != 1 || opt.Option[0].(*dns.EDNS0_EDE).InfoCode != 15 || msg.Rcode != dns.RcodeBadCookie {
		t.Errorf("OPT: %v", opt)
	}
	if len(msg.Answer) != 2 || msg.Answer[0].(*dns.A).A.String() != "198.51.100.1" || msg.Answer[1].(*dns.AAAA).AAAA.String() != "2001:db8::1" ||
		msg.Answer[1].Header().Name != row.Name || msg.Question[0] != (dns.Question{Name: row.Name, Qtype: dns.TypeA, Qclass: dns.ClassINET}) {
		t.Errorf("got %v", msg)
	}
}

func TestDnstapRows(t *testing.T) {
	for _, c := range []struct {
		name    string
		queries bool
		change  func(*qlog.Row)
		want    []dnstap.Message_Type
		check   func(t *testing.T, m *dnstap.Message)
	}{
		{"both", true, func(r *qlog.Row) { r.Flags, r.ECS = "AA RD RA CD DO", "192.0.2.0/25" },
			[]dnstap.Message_Type{dnstap.Message_CLIENT_QUERY, dnstap.Message_CLIENT_RESPONSE},
			func(t *testing.T, m *dnstap.Message) {
				msg := unpack(t, m.QueryMessage)
				opt := msg.IsEdns0()
				if msg.Response || msg.Authoritative || msg.RecursionAvailable || !msg.RecursionDesired || !msg.CheckingDisabled || opt == nil || !opt.Do() {
					t.Fatalf("got %v", msg)
				}
				if ecs := opt.Option[0].(*dns.EDNS0_SUBNET); ecs.SourceNetmask != 25 || ecs.Family != 1 || !ecs.Address.Equal(net.ParseIP("192.0.2.0")) {
					t.Errorf("RFC 7871 §6: %v", ecs)
				}
			}},
		{"no response", false, func(r *qlog.Row) { r.Size = 0 }, nil, nil},
		{"no response, with queries", true, func(r *qlog.Row) { r.Size = 0 }, []dnstap.Message_Type{dnstap.Message_CLIENT_QUERY}, nil},
		{"a pseudonym", false, func(r *qlog.Row) { r.Client = "c-0011223344556677" }, []dnstap.Message_Type{dnstap.Message_CLIENT_RESPONSE},
			func(t *testing.T, m *dnstap.Message) {
				if m.QueryAddress != nil || m.SocketFamily != nil {
					t.Errorf("got %v", m)
				}
			}},
		{"IPv6 over DoQ", false, func(r *qlog.Row) { r.Client, r.Protocol = "2001:db8::1", "quic" }, []dnstap.Message_Type{dnstap.Message_CLIENT_RESPONSE},
			func(t *testing.T, m *dnstap.Message) {
				if a, _ := netip.AddrFromSlice(m.QueryAddress); a.String() != "2001:db8::1" || m.GetSocketFamily() != dnstap.SocketFamily_INET6 || m.GetSocketProtocol() != 7 {
					t.Errorf("got %v", m)
				}
			}},
		{"odd words", false, func(r *qlog.Row) {
			r.Name, r.Type, r.Class, r.Rcode, r.Flags = `a\.b\000.example.`, "TYPE65280", "CLASS42", "RCODE11", ""
			r.Answers = ""
		}, []dnstap.Message_Type{dnstap.Message_CLIENT_RESPONSE}, func(t *testing.T, m *dnstap.Message) {
			msg := unpack(t, m.ResponseMessage)
			if q := msg.Question[0]; q.Name != `a\.b\000.example.` || q.Qtype != 65280 || q.Qclass != 42 || msg.Rcode != 11 || len(msg.Extra) > 0 {
				t.Errorf("got %v", msg)
			}
		}},
		{"CHAOS", false, func(r *qlog.Row) { r.Class, r.Type, r.Rcode, r.Answers = "CH", "TXT", "NXDOMAIN", "" }, []dnstap.Message_Type{dnstap.Message_CLIENT_RESPONSE},
			func(t *testing.T, m *dnstap.Message) {
				if msg := unpack(t, m.ResponseMessage); msg.Question[0].Qclass != dns.ClassCHAOS || msg.Rcode != dns.RcodeNameError {
					t.Errorf("got %v", msg)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := rows(0, 1)[0]
			c.change(&row)
			all := frames(t, c.queries, row)
			if len(all) != len(c.want) {
				t.Fatalf("got %v", all)
			}
			for i, d := range all {
				if d.Message.GetType() != c.want[i] {
					t.Errorf("got %v, want %v", d.Message.GetType(), c.want[i])
				}
			}
			if c.check != nil {
				c.check(t, all[0].Message)
			}
		})
	}
}

// A collector that does not finish is not waited for; one that does is.
func TestDnstapGoodbye(t *testing.T) {
	for _, c := range []struct {
		name   string
		finish bool
		most   time.Duration
	}{{"FINISH", true, 0}, {"silence", false, 2 * farewell}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stopped := false
				p := &peer{serve: func(conn net.Conn, got func(string)) error {
					if c.finish {
						err := serveDnstap(conn, got)
						stopped = errors.Is(err, io.EOF)
						return err
					}
					for _, f := range [][]byte{control(framestream.CONTROL_ACCEPT, contentType)} {
						if _, err := io.ReadFull(conn, make([]byte, len(f))); err != nil {
							return err
						}
						if _, err := conn.Write(f); err != nil {
							return err
						}
					}
					_, err := io.Copy(io.Discard, conn)
					return err
				}}
				s := open(t, config("dnstap", "tcp://192.0.2.1:1"), p.env())
				s.Put(rows(0, 1))
				synctest.Wait()
				begun := time.Now()
				closeSink(t, s)
				if took := time.Since(begun); took > c.most {
					t.Errorf("Close took %v, at most %v", took, c.most)
				}
				p.end()
				if stopped != c.finish {
					t.Errorf("the stream was stopped in order: %v", stopped)
				}
			})
		})
	}
}

// A collector of something else is a peer that is away.
func TestDnstapContentType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{serve: func(conn net.Conn, _ func(string)) error {
			_, err := framestream.NewReader(conn, &framestream.ReaderOptions{ContentTypes: [][]byte{[]byte("other")}, Bidirectional: true})
			return err
		}}
		s := open(t, config("dnstap", "tcp://192.0.2.1:1"), p.env())
		s.Put(rows(0, 1))
		time.Sleep(time.Minute)
		if got := s.Stats(); got.Sent > 0 || got.Errors == 0 || got.Connected {
			t.Errorf("got %+v", got)
		}
		if err := s.Close(); err == nil {
			t.Error("no error")
		}
		p.end()
	})
}

// tapNames reads a file of dnstap, which has to be whole.
func tapNames(t *testing.T, path string) []string {
	t.Helper()
	r, err := framestream.NewReader(bytes.NewReader(read(t, path)), &framestream.ReaderOptions{ContentTypes: [][]byte{[]byte(contentType)}})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	all := []string{}
	err = eachFrame(r, func(m *dnstap.Message) error {
		all = append(all, unpack(t, m.ResponseMessage).Question[0].Name)
		return nil
	})
	if !errors.Is(err, io.EOF) {
		t.Fatalf("%s: %v", path, err)
	}
	return all
}

func TestDnstapFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tap")
	for i := range 2 { // the second does not go on with the file of the first
		s := open(t, config("dnstap", path), Env{Wall: time.Now})
		s.Put(rows(10*i, 10))
		closeSink(t, s)
	}
	same(t, tapNames(t, path), names(10, 10))
	same(t, tapNames(t, path+".1"), names(0, 10))
}
