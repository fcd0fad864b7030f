package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// streamed is the records of a stream, as readAll has those of a file.
func streamed(src io.Reader, o Options) ([]string, error) {
	var got []string
	err := ReadStream("body", src, o, func(batch []Record) error {
		for _, r := range batch {
			if r.File != "body" {
				return fmt.Errorf("record of file %q", r.File)
			}
			got = append(got, formatRecord(r))
		}
		return nil
	})
	return got, err
}

// A stream gives what a text gives, in whatever pieces it comes and however many
// parse it.
func TestReadStreamIsReadText(t *testing.T) {
	text := benchZone(3000) + "$GENERATE 1-300 g$ A 192.0.2.1\nlast ( TXT \"a\nb\" ;x\n ) ; no newline"
	o := Options{Origin: mustName(t, "example.org")}
	var want []string
	err := ReadText("body", text, o, func(batch []Record) error {
		for _, r := range batch {
			want = append(want, formatRecord(r))
		}
		return nil
	})
	if err != nil || len(want) < 3301 {
		t.Fatalf("%d records, %v", len(want), err)
	}
	for _, workers := range []int{1, 3} {
		for _, chunk := range []int{100, 5000, 1 << 20} {
			for name, src := range map[string]io.Reader{
				"at once": strings.NewReader(text), "by octets": iotest.OneByteReader(strings.NewReader(text)),
				"error with data": iotest.DataErrReader(strings.NewReader(text)), "by halves": iotest.HalfReader(strings.NewReader(text)),
			} {
				o.Workers, o.chunk = workers, chunk
				if got, err := streamed(src, o); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d workers, chunks of %d, %s: %d records, want %d, %v", workers, chunk, name, len(got), len(want), err)
				}
			}
		}
	}
}

func TestReadStreamRefuses(t *testing.T) {
	broken := errors.New("connection reset")
	long := strings.Repeat("a A 192.0.2.1\n", 200)
	for _, c := range []struct {
		name string
		src  io.Reader
		o    Options
		want string
	}{
		{"a bad line behind the first chunks", strings.NewReader(long + "b A x\n" + long), Options{}, "body:201:5: error"},
		{"$INCLUDE", strings.NewReader(long + "$INCLUDE /etc/hostname\n"), Options{}, "body:201:10: error: $INCLUDE is not taken here"},
		{"$INCLUDE first", strings.NewReader("$INCLUDE body\n"), Options{}, "body:1:10: error: $INCLUDE is not taken here"},
		{"an error at once", iotest.ErrReader(broken), Options{}, "reading zone file body: connection reset"},
		{"an error in the middle", io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)), Options{}, "reading zone file body: connection reset"},
		{"too long", strings.NewReader(long), Options{Limits: Limits{Bytes: 1000}}, "more than 1000 bytes of text"},
		{"no origin", strings.NewReader(long), Options{Origin: nil, Limits: Limits{Problems: 1}}, "there is no $ORIGIN"},
	} {
		for _, workers := range []int{1, 3} {
			if seeker, ok := c.src.(io.Seeker); ok {
				_, _ = seeker.Seek(0, io.SeekStart)
			} else if workers > 1 {
				continue // it is read
			}
			c.o.Workers, c.o.chunk = workers, 128
			if c.name != "no origin" {
				c.o.Origin = mustName(t, "example.org")
			}
			if _, err := streamed(c.src, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %d workers: %v, want %s", c.name, workers, err, c.want)
			}
		}
	}
}

// What the caller refuses ends the reading, and nothing goes on behind its back.
func TestReadStreamEnds(t *testing.T) {
	stop := errors.New("enough")
	src := &endless{line: []byte("a A 192.0.2.1\n")}
	o := Options{Origin: mustName(t, "example.org"), Workers: 3, chunk: 256}
	err := ReadStream("body", src, o, func([]Record) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	// Each of the chunks there are is full at most, and may have grown once.
	if most := (2*o.Workers + 4) * 2 * o.chunk; src.read > most {
		t.Errorf("%d octets were read, at most %d can be in memory", src.read, most)
	}
}

// endless is a stream without an end.
type endless struct {
	line []byte
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e.line[(e.read+i)%len(e.line)]
	}
	e.read += len(b)
	return len(b), nil
}

func TestParseRDATA(t *testing.T) {
	origin := mustName(t, "example.org")
	for _, c := range []struct {
		name, rrtype, text string
		want               string // in hexadecimal, or a part of the error
	}{
		{"an address", "A", "192.0.2.1", "c0000201"},
		{"a relative name", "CNAME", "www", "03777777076578616d706c65036f726700"},
		{"the origin", "MX", "10 @", "000a076578616d706c65036f726700"},
		{"a relative name in RDATA of a rare type", "KX", "10 a", "000a0161076578616d706c65036f726700"},
		{"strings", "TXT", `"a b" c\;d`, "03612062 03633b64"},
		{"a quoted semicolon", "TXT", `"a;b"`, "03613b62"},
		{"a semicolon", "TXT", "v=DKIM1; k=rsa", "semicolon outside quotes (put the string between quotes)"},
		{"two lines", "A", "192.0.2.1\n192.0.2.2", "text behind the end of the line"},
		{"a line end at the end", "A", "192.0.2.1\n", "text behind the end of the line"},
		{"parentheses", "A", "(\n192.0.2.1 )", "c0000201"},
		{"an open parenthesis", "A", "( 192.0.2.1", "without its counterpart"},
		{"nothing", "A", "", "A record without RDATA (write an IPv4 address, as 192.0.2.1)"},
		{"an empty list, RFC 3123 4", "APL", "", ""},
		{"RFC 3597 5", "TYPE65280", `\# 2 abcd`, "abcd"},
		{"RFC 3597 of another length", "A", `\# 2 abcd`, "RDATA of 2 octets is not that of a A record"},
		{"a second address", "A", "192.0.2.1 192.0.2.2", "RDATA of A record"},
		{"an open quote", "TXT", `"a`, "without its counterpart"},
	} {
		t.Run(c.name, func(t *testing.T) {
			typ, ok := typeByName([]byte(c.rrtype))
			if !ok {
				t.Fatal(c.rrtype)
			}
			got, err := ParseRDATA(typ, c.text, origin)
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if fmt.Sprintf("%x", got) != strings.ReplaceAll(c.want, " ", "") {
				t.Errorf("got %x, want %s", got, c.want)
			}
		})
	}
	if _, err := ParseRDATA(5, "www", nil); err == nil {
		t.Error("a relative name without an origin is taken")
	}
}

// FuzzParseRDATA: what is taken is RDATA of its type, and is what a record with that
// text has.
func FuzzParseRDATA(f *testing.F) {
	for _, s := range seeds {
		fields := strings.SplitN(strings.TrimSpace(s), " ", 3)
		typ, ok := typeByName([]byte(fields[min(1, len(fields)-1)]))
		if ok && len(fields) == 3 {
			f.Add(typ, fields[2])
		}
	}
	f.Add(uint16(29), "51 30 12.748 N 0 7 39.611 W 0.00m 1m 10000m 10m")
	f.Add(uint16(260), "10 1 2 2001:db8::15")
	f.Fuzz(func(t *testing.T, typ uint16, text string) {
		if typ == 0 || typ == 41 || typ >= 128 && typ <= 255 {
			return
		}
		got, err := ParseRDATA(typ, text, mustName(t, "example.org"))
		if err != nil {
			return
		}
		var want []byte
		line := fmt.Sprintf("@ 60 TYPE%d %s\n", typ, text)
		err = ReadText("text", line, Options{Origin: mustName(t, "example.org")}, func(all []Record) error {
			want = bytes.Clone(all[0].RDATA)
			return nil
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x, %v", got, want, err)
		}
	})
}

// RDATA that no RFC takes for that of its type is read with Options.Opaque only,
// and what has not even its layout never.
func TestOpaque(t *testing.T) {
	for _, c := range []struct {
		line           string
		strict, opaque bool
	}{
		{`a 60 NSEC \# 4 00000100`, false, true},
		{`a 60 A \# 3 010203`, false, false},
		{`a 60 MX \# 4 000ac000`, false, false},
		{`a 60 WKS \# 3 010203`, false, false},
		{`a 60 EID \# 0`, false, true},
		{`a 60 AMTRELAY \# 6 0a81cb00710f`, true, true},
		{`a 60 ISDN \# 2 0131`, true, true},
	} {
		for _, opaque := range []bool{false, true} {
			err := ReadText("text", c.line, Options{Origin: mustName(t, "example.org"), Opaque: opaque}, func([]Record) error { return nil })
			if want := opaque && c.opaque || c.strict; (err == nil) != want {
				t.Errorf("%s, opaque %v: %v", c.line, opaque, err)
			}
		}
	}
}

// RDATA of types that the slow path would change.
func TestRareTypes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"LOC, RFC 1876 3", "LOC 51 30 12.748 N 0 7 39.611 W -24m 1m 10000m 10m", "00121613 8b0d2c8c 7ff8fca5 00988d20"},
		{"LOC south and east", "LOC 90 0 0 S 180 0 0.000 E -100000m 0.00m 90m 0.09m", "00009390 6cb02700 a69fb200 00000000"},
		{"AMTRELAY with its flag, RFC 8777 4.3", "AMTRELAY 10 1 2 2001:db8::15", "0a8220010db8000000000000000000000015"},
		{"AMTRELAY without a relay", "AMTRELAY 10 0 0 .", "0a00"},
		{"AMTRELAY, a name", "AMTRELAY 10 0 3 a.", "0a03016100"},
		{"URI with a backslash", `URI 1 2 "a\\b\""`, "00010002615c6222"},
		{"CAA with a backslash", `CAA 0 issue "\\"`, "000569737375655c"},
		{"CAA without a value", `CAA 0 issue ""`, "00056973737565"},
		{"ISDN without a subaddress, RFC 1183 3.2", "ISDN 15", "023135"},
		{"DSYNC, RFC 9859 2", "DSYNC CDS 1 5351 a.", "003b0114e7016100"},
		{"WALLET", `WALLET "a" b`, "01610162"},
		{"names of marks alone", `RP \(. \\.`, "012800015c00"},
		{"CSYNC, RFC 7477 2.1", "CSYNC 66 3 A NS AAAA", "000000420003000460000008"},
	} {
		got, problems := parseText(t, []byte("a "+c.text), false)
		if len(got) != 1 || len(problems) > 0 || !strings.HasSuffix(got[0], " "+strings.ReplaceAll(c.want, " ", "")) {
			t.Errorf("%s: %q, %v", c.name, got, problems)
		}
	}
	for _, text := range []string{
		"LOC 91 0 0 N 0 0 0 E 0m 0m 0m 0m", "LOC 90 0 0.001 N 0 0 0 E 0m 0m 0m 0m", "LOC 1 60 0 N 0 0 0 E 0m 0m 0m 0m",
		"AMTRELAY 10 2 0 .", "AMTRELAY 10 1 1 2001:db8::1", "AMTRELAY 10 0 0 x", "CAA 0 is-sue x y", "URI 1 2",
	} {
		if got, problems := parseText(t, []byte("a "+text), false); len(got) > 0 || len(problems) != 1 {
			t.Errorf("%s: %q, %v", text, got, problems)
		}
	}
}
