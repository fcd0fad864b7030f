package zonefile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

func TestReadText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          zonefile.Options
		want       string // owner class type TTL and RDATA of each record, or the end of an error
	}{
		{"nothing", "; nothing", zonefile.Options{}, ""},
		{"an absolute name, an hour where no TTL is stated", "a.example. IN A 192.0.2.1", zonefile.Options{}, "a.example. 1 1 3600 c0000201"},
		{"a TTL goes on to the next record", "a.example. 60 A 192.0.2.1\nb.example. A 192.0.2.2", zonefile.Options{}, "a.example. 1 1 60 c0000201,b.example. 1 1 60 c0000202"},
		{"$TTL", "$TTL 5\na.example. A 192.0.2.1", zonefile.Options{}, "a.example. 1 1 5 c0000201"},
		{"$ORIGIN", "$ORIGIN example.\na 1 CNAME b\n@ 1 A 192.0.2.1", zonefile.Options{}, "a.example. 1 5 1 0162076578616d706c6500,example. 1 1 1 c0000201"},
		{"an origin", "a 1 A 192.0.2.1", zonefile.Options{Origin: wire.Name("\x07example\x00")}, "a.example. 1 1 1 c0000201"},
		{"a relative owner", "a 1 A 192.0.2.1", zonefile.Options{}, "there is no $ORIGIN: end it with a dot"},
		{"@ without an origin", "@ 1 A 192.0.2.1", zonefile.Options{}, "there is no $ORIGIN: end it with a dot"},
		{"a relative $ORIGIN", "$ORIGIN example\n", zonefile.Options{}, "there is no $ORIGIN: end it with a dot"},
		{"a relative name in RDATA", "a. 1 CNAME b", zonefile.Options{}, "is not understood"},
		{"a relative name in RDATA of a rare type", "a. 1 KX 10 b", zonefile.Options{}, "is not understood"},
		{"the name of the text and the line in errors", "\na. 1 A x", zonefile.Options{}, "text:2:8"},
		{"$INCLUDE", "$INCLUDE /etc/hostname", zonefile.Options{}, "$INCLUDE is not taken here"},
		{"class CH", "a. 1 CH TXT x", zonefile.Options{}, "class CH is not served"},
		{"class CH, any class", "a. CH 1 TXT x\nb. 1 IN TXT y", zonefile.Options{Classes: true}, "a. 3 16 1 0178,b. 1 16 1 0179"},
		{"CLASS32 (RFC 3597 §5)", "a. 1 CLASS32 TXT x\nb. 1 TXT y", zonefile.Options{Classes: true}, "a. 32 16 1 0178,b. 1 16 1 0179"},
		{"a class of questions alone", "a. 1 NONE TXT x", zonefile.Options{Classes: true}, "class NONE is not served"},
		{"a class beyond 16 bits", "a. 1 CLASS65536 TXT x", zonefile.Options{Classes: true}, "class CLASS65536 is not served"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			err := zonefile.ReadText("text", c.text, c.o, func(all []zonefile.Record) error {
				for _, r := range all {
					got = append(got, fmt.Sprintf("%v %d %d %d %x", r.Owner, r.Class, r.Type, r.TTL, r.RDATA))
				}
				return nil
			})
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("read %q, want %q", got, c.want)
			}
		})
	}
}

// A text is as long as it is: no chunk cuts it.
func TestReadTextLong(t *testing.T) {
	n := 0
	text := strings.Repeat("a.example. 60 IN TXT \"0123456789012345678901234567890123456789\"\n", 10_000)
	err := zonefile.ReadText("text", text, zonefile.Options{}, func(all []zonefile.Record) error {
		n += len(all)
		if slices.ContainsFunc(all, func(r zonefile.Record) bool { return len(r.RDATA) != 41 }) {
			t.Error("a record is cut")
		}
		return nil
	})
	if err != nil || n != 10_000 {
		t.Errorf("%d records, %v", n, err)
	}
}
