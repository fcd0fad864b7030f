package match

import (
	"testing"

	"github.com/waymark-dns/waymark/internal/wire"
)

// Numbers of in-addr.arpa may have zeros in front: what they stand for is clear.
func TestReverseAddrNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"4.3.2.1.in-addr.arpa.":           "1.2.3.4",
		"04.003.0002.01.in-addr.arpa":     "1.2.3.4",
		"0.255.00.1.IN-ADDR.ARPA.":        "1.0.255.0",
		"256.3.2.1.in-addr.arpa.":         "",
		"99999999999.3.2.1.in-addr.arpa.": "",
		"4a.3.2.1.in-addr.arpa.":          "",
		"3.2.1.in-addr.arpa.":             "",
	} {
		name, err := wire.ParseName(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if a, ok := ReverseAddr(name); ok {
			got = a.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
