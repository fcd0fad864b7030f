package wire_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/wire"
)

// tsigNow is the time of the tests, in seconds since 1970.
const tsigNow = 1_750_000_000

var tsigSecret = []byte("0123456789abcdef0123456789abcdef")

func tsigKey(t testing.TB, name, algorithm string, secret []byte) *wire.TSIGKey {
	t.Helper()
	n, err := wire.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	k, err := wire.NewTSIGKey(n, algorithm, secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// packed is a message of the oracle in wire format.
func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func axfrQuery() *dns.Msg {
	m := new(dns.Msg)
	m.SetAxfr("example.org.")
	m.Id = 0x1234
	return m
}

// axfrPart is one message of a response.
func axfrPart(t testing.TB, n int) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetReply(axfrQuery())
	rr, err := dns.NewRR(fmt.Sprintf("h%d.example.org. 300 IN A 192.0.2.%d", n, n%256))
	if err != nil {
		t.Fatal(err)
	}
	m.Answer = []dns.RR{rr}
	return m
}

// signedByOracle is m signed by miekg/dns, and the MAC for the next one.
func signedByOracle(t testing.TB, m *dns.Msg, algorithm, prior string, timers bool) ([]byte, string) {
	t.Helper()
	m.SetTsig("Key.Example.", algorithm, 300, tsigNow)
	b, mac, err := dns.TsigGenerate(m, base64.StdEncoding.EncodeToString(tsigSecret), prior, timers)
	if err != nil {
		t.Fatal(err)
	}
	return b, mac
}

var tsigNames = []string{dns.HmacSHA1, dns.HmacSHA224, dns.HmacSHA256, dns.HmacSHA384, dns.HmacSHA512}

// RFC 8945 §4.3, §5.3.1: what we sign, the oracle verifies, and the reverse.
func TestTSIGOracle(t *testing.T) {
	for _, algorithm := range tsigNames {
		t.Run(algorithm, func(t *testing.T) {
			key := tsigKey(t, "key.example.", algorithm, tsigSecret)
			client := wire.NewTSIG(key)
			query := client.Sign(packed(t, axfrQuery()), tsigNow)
			m := new(dns.Msg)
			if err := m.Unpack(query); err != nil {
				t.Fatal(err)
			}
			record := m.IsTsig()
			if record == nil {
				t.Fatal("the query has no TSIG record")
			}
			secret := base64.StdEncoding.EncodeToString(tsigSecret)
			if err := verifyByOracle(query, secret, "", false); err != nil {
				t.Fatalf("the oracle refuses the query: %v", err)
			}
			prior := record.MAC
			for i := range 5 {
				msg, mac := signedByOracle(t, axfrPart(t, i), algorithm, prior, i > 0)
				bare, err := client.Verify(msg, tsigNow+10)
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if got := new(dns.Msg); got.Unpack(bare) != nil || got.IsTsig() != nil || len(got.Answer) != 1 {
					t.Fatalf("message %d: what is left is not the message", i)
				}
				prior = mac
			}
			if err := client.End(); err != nil {
				t.Error(err)
			}
		})
	}
}

// verifyByOracle is what miekg/dns says, with a clock of its own put aside: a wide
// fudge cannot be, so its time error is not looked at.
func verifyByOracle(msg []byte, secret, prior string, timers bool) error {
	err := dns.TsigVerify(append([]byte(nil), msg...), secret, prior, timers)
	if errors.Is(err, dns.ErrTime) {
		return nil // it looks at the time after the signature
	}
	return err
}

// tsigPair is a client that has sent its query, and the server that has taken it.
func tsigPair(t testing.TB) (client, server *wire.TSIG) {
	t.Helper()
	key := tsigKey(t, "key.example.", "HMAC-SHA256.", tsigSecret)
	client, server = wire.NewTSIG(key), wire.NewTSIG(key)
	query := client.Sign(packed(t, axfrQuery()), tsigNow)
	if _, err := server.Verify(query, tsigNow); err != nil {
		t.Fatalf("the server refuses the query: %v", err)
	}
	return client, server
}

// RFC 8945 §5.3.1: messages without a record stand in the digest of the next that
// has one; there are 99 in a row at most, and the last has a record.
func TestTSIGUnsignedBetween(t *testing.T) {
	for _, c := range []struct {
		name  string
		loose int // messages without a record behind the first
		close bool
		touch bool // one of them is changed on its way
		want  error
	}{
		{"none", 0, true, false, nil},
		{"one", 1, true, false, nil},
		{"99", 99, true, false, nil},
		{"100", 100, true, false, wire.ErrTSIGUnsigned},
		{"an unsigned tail", 3, false, false, wire.ErrTSIGTail},
		{"one that was changed", 3, true, true, wire.ErrBadSig},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := tsigPair(t)
			err := func() error {
				if _, err := client.Verify(server.Sign(packed(t, axfrPart(t, 0)), tsigNow), tsigNow); err != nil {
					return err
				}
				for i := range c.loose {
					msg := packed(t, axfrPart(t, i))
					server.Digest(msg)
					if c.touch && i == 1 {
						msg[len(msg)-1] ^= 1
					}
					if _, err := client.Verify(msg, tsigNow); err != nil {
						return err
					}
				}
				if c.close {
					if _, err := client.Verify(server.Sign(packed(t, axfrPart(t, 7)), tsigNow), tsigNow); err != nil {
						return err
					}
				}
				return client.End()
			}()
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// response is one message that the server of the pair signed.
func tsigResponse(t testing.TB, server *wire.TSIG) []byte {
	t.Helper()
	return server.Sign(packed(t, axfrPart(t, 1)), tsigNow)
}

func TestTSIGRefuses(t *testing.T) {
	other := tsigKey(t, "key.example.", "hmac-sha256", []byte("another secret"))
	for _, c := range []struct {
		name string
		msg  func(t testing.TB, server *wire.TSIG) []byte
		now  int64
		want error
	}{
		{"sound", tsigResponse, 0, nil},
		{"300 seconds late, RFC 8945 5.2.3", tsigResponse, 300, nil},
		{"300 seconds early", tsigResponse, -300, nil},
		{"301 seconds late", tsigResponse, 301, wire.ErrBadTime},
		{"301 seconds early", tsigResponse, -301, wire.ErrBadTime},
		{"no record, 5.4", func(t testing.TB, _ *wire.TSIG) []byte { return packed(t, axfrPart(t, 1)) }, 0, wire.ErrTSIGMissing},
		{"another secret", func(t testing.TB, _ *wire.TSIG) []byte {
			return wire.NewTSIG(other).Sign(packed(t, axfrPart(t, 1)), tsigNow)
		}, 0, wire.ErrBadSig},
		{"without the query's MAC, 5.3", func(t testing.TB, _ *wire.TSIG) []byte {
			return wire.NewTSIG(tsigKey(t, "key.example.", "hmac-sha256", tsigSecret)).Sign(packed(t, axfrPart(t, 1)), tsigNow)
		}, 0, wire.ErrBadSig},
		{"another key name, 5.2.1", func(t testing.TB, _ *wire.TSIG) []byte {
			return wire.NewTSIG(tsigKey(t, "other.example.", "hmac-sha256", tsigSecret)).Sign(packed(t, axfrPart(t, 1)), tsigNow)
		}, 0, wire.ErrBadKey},
		{"another algorithm", func(t testing.TB, _ *wire.TSIG) []byte {
			return wire.NewTSIG(tsigKey(t, "key.example.", "hmac-sha512", tsigSecret)).Sign(packed(t, axfrPart(t, 1)), tsigNow)
		}, 0, wire.ErrBadKey},
		{"BADKEY without a MAC, 5.3.2", peerTells(17, nil), 0, wire.ErrBadKey},
		{"BADSIG without a MAC, 5.3.2", peerTells(16, nil), 0, wire.ErrBadSig},
		{"an error that nobody knows", peerTells(99, nil), 0, wire.ErrTSIGFormat},
		{"no MAC and no error", peerTells(0, nil), 0, wire.ErrTSIGFormat},
		{"MAC of 15 octets, below half, 5.2.2.1", peerTells(0, make([]byte, 15)), 0, wire.ErrTSIGFormat},
		{"MAC of 33 octets, 5.2.2.1", peerTells(0, make([]byte, 33)), 0, wire.ErrTSIGFormat},
		{"MAC of 16 octets, wrong", peerTells(0, make([]byte, 16)), 0, wire.ErrBadSig},
		{"record behind it, 5.1", func(t testing.TB, server *wire.TSIG) []byte {
			msg := tsigResponse(t, server)
			msg[11]++
			return append(msg, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4)
		}, 0, wire.ErrTSIGFormat},
		{"octets behind it", func(t testing.TB, server *wire.TSIG) []byte { return append(tsigResponse(t, server), 0) }, 0, wire.ErrTSIGFormat},
		{"cut", func(t testing.TB, server *wire.TSIG) []byte {
			msg := tsigResponse(t, server)
			return msg[:len(msg)-1]
		}, 0, wire.ErrTSIGFormat},
		{"shorter than a header", func(testing.TB, *wire.TSIG) []byte { return make([]byte, 11) }, 0, wire.ErrShort},
		{"TTL that is not 0, 4.2", func(t testing.TB, server *wire.TSIG) []byte {
			msg := tsigResponse(t, server)
			at := len(msg) - tsigSize + len("\x03key\x07example\x00") + 4
			msg[at] = 1
			return msg
		}, 0, wire.ErrTSIGFormat},
		{"another ID, as a forwarder gives, 4.2", func(t testing.TB, server *wire.TSIG) []byte {
			msg := tsigResponse(t, server)
			msg[0], msg[1] = 0xab, 0xcd
			return msg
		}, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := tsigPair(t)
			msg := c.msg(t, server)
			bare, err := client.Verify(msg, tsigNow+c.now)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && binary.BigEndian.Uint16(bare) != 0x1234 {
				t.Errorf("ID %#x is not the one that was signed", binary.BigEndian.Uint16(bare))
			}
		})
	}
}

// tsigSize is the octets of the record that the pair's key makes.
const tsigSize = len("\x03key\x07example\x00") + 10 + len("\x0bhmac-sha256\x00") + 16 + 32

// peerTells is a response whose TSIG record has that error and MAC.
func peerTells(code uint16, mac []byte) func(testing.TB, *wire.TSIG) []byte {
	return func(t testing.TB, _ *wire.TSIG) []byte {
		m := axfrPart(t, 1)
		m.Extra = append(m.Extra, &dns.TSIG{
			Hdr:       dns.RR_Header{Name: "key.example.", Rrtype: dns.TypeTSIG, Class: dns.ClassANY},
			Algorithm: dns.HmacSHA256, TimeSigned: tsigNow, Fudge: 300,
			MACSize: uint16(len(mac)), MAC: fmt.Sprintf("%x", mac), OrigId: m.Id, Error: code,
		})
		return packed(t, m)
	}
}

// RFC 8945 §5.2.2.1: truncated MACs are taken where the key's owner allows it.
func TestTSIGTruncated(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, size int
		want        error
	}{
		{"whole", 0, 32, nil},
		{"31 where all are wanted", 0, 31, wire.ErrBadTrunc},
		{"16 where 16 will do", 16, 16, nil},
		{"16 where 20 are wanted", 20, 16, wire.ErrBadTrunc},
		{"16 where less than allowed is wanted", 1, 16, nil},
		{"15 where less than allowed is wanted", 1, 15, wire.ErrTSIGFormat},
		{"whole where more than all is wanted", 99, 32, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := tsigKey(t, "key.example.", "hmac-sha256", tsigSecret)
			msg := wire.NewTSIG(key).Sign(packed(t, axfrQuery()), tsigNow)
			key.Least = c.least
			if _, err := wire.NewTSIG(key).Verify(cutMAC(msg, c.size), tsigNow); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// cutMAC leaves size octets of the MAC of a message that the pair's key signed.
func cutMAC(msg []byte, size int) []byte {
	mac := len(msg) - 6 - 32
	out := append([]byte(nil), msg[:mac+size]...)
	out = append(out, msg[mac+32:]...)
	binary.BigEndian.PutUint16(out[mac-2:], uint16(size))
	rdlen := len(msg) - tsigSize + len("\x03key\x07example\x00") + 8
	binary.BigEndian.PutUint16(out[rdlen:], binary.BigEndian.Uint16(out[rdlen:])-uint16(32-size))
	return out
}

// No octet of a signed message may change: each that does is an error, except the
// ID in front (RFC 8945 §4.2) and what letters a name has.
func TestTSIGEveryOctet(t *testing.T) {
	key := tsigKey(t, "key.example.", "hmac-sha256", tsigSecret)
	query := wire.NewTSIG(key).Sign(packed(t, axfrQuery()), tsigNow)
	for i := 2; i < len(query); i++ {
		for bit := range 8 {
			msg := append([]byte(nil), query...)
			if msg[i] ^= 1 << bit; 1<<bit == 0x20 && i > 28 {
				continue // perhaps a letter of the key's name or the algorithm's
			}
			if _, err := wire.NewTSIG(key).Verify(msg, tsigNow); err == nil {
				t.Errorf("octet %d, bit %d: changed, and verified", i, bit)
			}
		}
	}
}

func TestTSIGKey(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		secret    []byte
		want      error
	}{
		{"hmac-sha256", tsigSecret, nil},
		{"HMAC-SHA512.", tsigSecret, nil},
		{"hmac-md5.sig-alg.reg.int", tsigSecret, wire.ErrTSIGAlgorithm},
		{"", tsigSecret, wire.ErrTSIGAlgorithm},
		{"hmac-sha256", nil, wire.ErrTSIGSecret},
	} {
		if _, err := wire.NewTSIGKey(wire.Root, c.algorithm, c.secret); !errors.Is(err, c.want) {
			t.Errorf("%q: got %v, want %v", c.algorithm, err, c.want)
		}
	}
}

// FuzzTSIG looks for messages that break the reader, and for any that verify
// though nobody signed them.
func FuzzTSIG(f *testing.F) {
	key := tsigKey(f, "key.example.", "hmac-sha256", tsigSecret)
	query := wire.NewTSIG(key).Sign(packed(f, axfrQuery()), tsigNow)
	f.Add(query)
	f.Add(query[:len(query)-1])
	f.Add(packed(f, axfrPart(f, 1)))
	strange := tsigKey(f, "key.example.", "hmac-sha256", []byte("the server's"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if bare, err := wire.NewTSIG(strange).Verify(append([]byte(nil), msg...), tsigNow); err == nil {
			t.Errorf("verified as %x without a signature", bare)
		}
	})
}
