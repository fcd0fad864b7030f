package limit

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func secret(t testing.TB, text string) [16]byte { return [16]byte(unhex(t, text)) }

// The vectors of the authors' reference code: key and message count up from 0.
func TestSipHash(t *testing.T) {
	for n, want := range map[int]string{
		0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 2: "5a4fa9d909806c0d", 3: "2d7efbd796666785",
		4: "b7877127e09427cf", 5: "8da699cd64557618", 6: "cee3fe586e46c9cb", 7: "37d1018bf50002ab",
		8: "6224939a79f5f593", 9: "b0e4a90bdf82009e", 10: "f3b9dd94c5bb5d7a", 11: "a7ad6b22462fb3f4",
		12: "fbe50e86bc8f1e75", 13: "903d84c02756ea14", 14: "eef27a8e90ca23f7", 15: "e545be4961ca29a1",
		63: "724506eb4c328a95",
	} {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(i)
		}
		key := newSipKey(secret(t, "000102030405060708090a0b0c0d0e0f"))
		if got := hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, key.sum24(msg))); got != want {
			t.Errorf("%d octets: %s, want %s", n, got, want)
		}
	}
}

const (
	secretA   = "e5e973e5a6b2a43f48e7dc849e37bfcf" // RFC 9018 A.1 to A.3
	secretOld = "dd3bdf9344b678b185a6f5cb60fca715" // RFC 9018 A.4
	secretNew = "445536bcd2513298075a5d379663c962"
)

func TestMake(t *testing.T) {
	for _, c := range []struct {
		rfc, secret, client, addr string
		unix                      uint32
		want                      string
	}{
		{"RFC 9018 A.1", secretA, "2464c4abcf10c957", "198.51.100.100", 1559731985, "010000005cf79f111f8130c3eee29480"},
		{"RFC 9018 A.2", secretA, "2464c4abcf10c957", "198.51.100.100", 1559734385, "010000005cf7a871d4a564a1442aca77"},
		{"RFC 9018 A.3", secretA, "fc93fc62807ddb86", "203.0.113.203", 1559734700, "010000005cf7a9acf73a7810aca2381e"},
		{"RFC 9018 A.4, before", secretOld, "22681ab97d52c298", "2001:db8:220:1:59de:d0f4:8769:82b8", 1559741817, "010000005cf7c57926556bd0934c72f8"},
		{"RFC 9018 A.4", secretNew, "22681ab97d52c298", "2001:db8:220:1:59de:d0f4:8769:82b8", 1559741961, "010000005cf7c609a6bb79d16625507a"},
		{"mapped", secretA, "2464c4abcf10c957", "::ffff:198.51.100.100", 1559731985, "010000005cf79f111f8130c3eee29480"},
		{"zone", secretNew, "22681ab97d52c298", "2001:db8:220:1:59de:d0f4:8769:82b8%eth0", 1559741961, "010000005cf7c609a6bb79d16625507a"},
	} {
		var got [CookieSize]byte
		NewCookies(secret(t, c.secret)).Make(&got, unhex(t, c.client), netip.MustParseAddr(c.addr), c.unix)
		if want := unhex(t, c.client+c.want); !bytes.Equal(got[:], want) {
			t.Errorf("%s: %x, want %x", c.rfc, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	const made = 1559731985
	a1, a3 := "2464c4abcf10c957010000005cf79f111f8130c3eee29480", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5"
	a4 := "22681ab97d52c298010000005cf7c57926556bd0934c72f8"
	v4, v6 := "198.51.100.100", "2001:db8:220:1:59de:d0f4:8769:82b8"
	one := NewCookies(secret(t, secretA))
	for _, c := range []struct {
		name         string
		cookies      *Cookies
		option, addr string
		unix         uint32
		want         State
	}{
		{"RFC 7873 §5.2.3: client cookie alone", one, a1[:16], v4, made, ClientOnly},
		{"RFC 9018 A.1", one, a1, v4, made, Good},
		{"mapped", one, a1, "::ffff:" + v4, made, Good},
		{"RFC 9018 A.2: 40 minutes old", one, a1, v4, 1559734385, Stale},
		{"RFC 9018 A.3: reserved octets are hashed as they come", one, a3, "203.0.113.203", 1559727985 + 60, Good},
		{"RFC 9018 A.3, but over an hour old (§4.3)", one, a3, "203.0.113.203", 1559734700, Bad},
		{"RFC 9018 A.4", NewCookies(secret(t, secretNew), secret(t, secretOld)), a4, v6, 1559741961, Stale},
		{"RFC 9018 A.4, two secrets later", NewCookies(secret(t, secretNew), secret(t, secretA), secret(t, secretOld)), a4, v6, 1559741961, Stale},
		{"RFC 9018 A.4, the old secret forgotten", NewCookies(secret(t, secretNew)), a4, v6, 1559741961, Bad},
		{"§4.3: half an hour", one, a1, v4, made + 1800, Good},
		{"§4.3: more", one, a1, v4, made + 1801, Stale},
		{"§4.3: an hour", one, a1, v4, made + 3600, Stale},
		{"§4.3: more", one, a1, v4, made + 3601, Bad},
		{"§4.3: five minutes of the future", one, a1, v4, made - 300, Good},
		{"§4.3: more", one, a1, v4, made - 301, Bad},
		{"§4.3: half the circle of serial numbers", one, a1, v4, made + 1<<31, Bad},
		{"another address", one, a1, "198.51.100.101", made, Bad},
		{"another client cookie", one, "3" + a1[1:], v4, made, Bad},
		{"another version", one, a1[:16] + "02" + a1[18:], v4, made, Bad},
		{"another time", one, a1[:31] + "2" + a1[32:], v4, made, Bad},
		{"another server's", one, a1 + "00", v4, made, Bad},
		{"another server's, short", one, a1[:32], v4, made, Bad},
		{"no address", one, a1, "", made, Bad},
	} {
		var addr netip.Addr
		if c.addr != "" {
			addr = netip.MustParseAddr(c.addr)
		}
		got := c.cookies.Check(unhex(t, c.option), addr, c.unix)
		if got != c.want || got.Valid() != (c.want == Good || c.want == Stale) {
			t.Errorf("%s: state %d, want %d", c.name, got, c.want)
		}
	}
}

// RFC 7873 §5.2.2: the lengths that are a FORMERR.
func TestCookieLengths(t *testing.T) {
	for n := range 70 {
		want := Malformed
		if n == 8 {
			want = ClientOnly
		} else if n >= 16 && n <= 40 {
			want = Bad
		}
		if got := NewCookies([16]byte{1}).Check(make([]byte, n), client(1), 0); got != want {
			t.Errorf("%d octets: state %d, want %d", n, got, want)
		}
	}
}

// RFC 9018 §4.1: a version that is not known cannot be valid, however hashed.
func TestCookieVersion(t *testing.T) {
	c := NewCookies([16]byte{1})
	for version := range 4 {
		var cookie [CookieSize]byte
		c.Make(&cookie, cookie[:], client(1), 1000)
		cookie[8] = byte(version)
		serverHash((*[8]byte)(cookie[16:]), c.keys[0], cookie[:16], client(1))
		if got := c.Check(cookie[:], client(1), 1000); (got == Good) != (version == 1) {
			t.Errorf("version %d: state %d", version, got)
		}
	}
}

// No bit of a cookie is without meaning, nor is the time when the clock's 32
// bits start again.
func TestCookieBits(t *testing.T) {
	c := NewCookies([16]byte{1})
	var cookie [CookieSize]byte
	const now = 1<<32 - 10
	c.Make(&cookie, []byte("abcdefgh and more"), client(1), now)
	if c.Check(cookie[:], client(1), now) != Good || c.Check(cookie[:], client(1), 100) != Good || c.Check(cookie[:], client(1), 2000) != Stale {
		t.Error("a cookie is not good across the turn of the clock")
	}
	for i := range CookieSize * 8 {
		cookie[i/8] ^= 1 << (i % 8)
		if got := c.Check(cookie[:], client(1), now); got != Bad {
			t.Errorf("bit %d changed: state %d", i, got)
		}
		cookie[i/8] ^= 1 << (i % 8)
	}
}

func FuzzCheck(f *testing.F) {
	c := NewCookies(secret(f, secretA), secret(f, secretOld))
	f.Add(unhex(f, "2464c4abcf10c957010000005cf79f111f8130c3eee29480"), []byte{198, 51, 100, 100}, uint32(1559731985))
	f.Add(unhex(f, "22681ab97d52c298010000005cf7c57926556bd0934c72f8"), netip.MustParseAddr("2001:db8:220:1:59de:d0f4:8769:82b8").AsSlice(), uint32(1559741961))
	f.Add(make([]byte, 8), []byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, option, addr []byte, unix uint32) {
		from, _ := netip.AddrFromSlice(addr)
		before := bytes.Clone(option)
		state := c.Check(option, from, unix)
		if !bytes.Equal(before, option) {
			t.Fatal("the option was changed")
		}
		if n := len(option); (state == Malformed) != (n < 8 || n > 8 && n < 16 || n > 40) || (state == ClientOnly) != (n == 8) {
			t.Fatalf("%d octets: state %d", n, state)
		}
		if state == Malformed {
			return
		}
		var own [CookieSize]byte
		c.Make(&own, option, from, unix)
		if got := c.Check(own[:], from, unix); got != Good {
			t.Fatalf("a cookie of our own: state %d", got)
		}
		if !state.Valid() || option[9] != 0 || option[10] != 0 || option[11] != 0 {
			return
		}
		// What is valid was made here, with one of the secrets.
		for _, text := range []string{secretA, secretOld} {
			NewCookies(secret(t, text)).Make(&own, option, from, binary.BigEndian.Uint32(option[12:]))
			if bytes.Equal(own[:], option) {
				return
			}
		}
		t.Fatalf("%x is valid and nobody made it", option)
	})
}
