package plan

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"listen", "zones", "server", "log", "metrics", "control"}
	for in, want := range map[string]string{
		"listen": "listen", "lisen": "listen", "lsiten": "listen", "zone": "zones", "zoens": "zones",
		"sevrer": "server", "logs": "log", "lgo": "log", "metric": "metrics", "contorl": "control",
		"": "", "forward": "", "l": "", "x": "", strings.Repeat("listen", 1000): "",
	} {
		if got := Nearest(in, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
