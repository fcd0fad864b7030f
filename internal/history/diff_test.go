package history

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	long := func(change ...int) string {
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, "%d\n", i+1)
			for _, c := range change {
				if c == i+1 {
					b.WriteString("new\n")
				}
			}
		}
		return b.String()
	}
	for _, c := range []struct{ name, a, b, want string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"into nothing", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		{"out of nothing", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"a line changed", "a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		{"an end without a line end", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"two places", long(), long(3, 17), "@@ -1,6 +1,7 @@\n 1\n 2\n 3\n+new\n 4\n 5\n 6\n@@ -15,6 +16,7 @@\n 15\n 16\n 17\n+new\n 18\n 19\n 20\n"},
		{"two places close by", long(), long(3, 9), "@@ -1,12 +1,14 @@\n 1\n 2\n 3\n+new\n 4\n 5\n 6\n 7\n 8\n 9\n+new\n 10\n 11\n 12\n"},
		{"the fewest", "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", "@@ -1,7 +1,6 @@\n-a\n-b\n c\n+b\n a\n b\n-b\n a\n+c\n"},
	} {
		want := c.want
		if want != "" {
			want = "--- x\n+++ y\n" + want
		}
		if got := Diff("x", "y", c.a, c.b); got != want {
			t.Errorf("%s: got\n%s, want\n%s", c.name, got, want)
		}
		checkDiff(t, c.a, c.b)
	}
	// Far more than what a search is worth.
	var a, b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&a, "%d\n", i)
		fmt.Fprintf(&b, "%d\n", -i-1)
	}
	checkDiff(t, a.String(), b.String())
}

// checkDiff applies the diff to a, which must give b, and backwards.
func checkDiff(t *testing.T, a, b string) {
	t.Helper()
	d := Diff("x", "y", a, b)
	if d == "" {
		if a != b {
			t.Errorf("%q and %q are equal", a, b)
		}
		return
	}
	for from, to := range map[string]string{"-": "+", "+": "-"} {
		in, out := a, b
		if from == "+" {
			in, out = b, a
		}
		if got, err := patch(in, d, from, to); err != nil || got != out {
			t.Fatalf("%q to %q by %q: %q, %v", in, out, d, got, err)
		}
	}
}

// patch applies a unified diff; from and to are the marks of lines that go and come.
func patch(text, d, from, to string) (string, error) {
	old := lines(text)
	var out strings.Builder
	at := 0
	all := lines(d)[2:]
	for i, line := range all {
		mark, rest := line[:1], line[1:]
		if i+1 < len(all) && strings.HasPrefix(all[i+1], "\\") {
			rest = strings.TrimSuffix(rest, "\n")
		}
		switch mark {
		case "@":
			var a, b, c, e int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &a, &b, &c, &e); err != nil {
				return "", err
			}
			if from == "+" {
				a, b = c, e
			}
			if b > 0 {
				a--
			}
			for ; at < a; at++ {
				out.WriteString(old[at])
			}
		case " ", from:
			if at >= len(old) || old[at] != rest {
				return "", fmt.Errorf("line %d is not %q", at+1, rest)
			}
			if mark == " " {
				out.WriteString(rest)
			}
			at++
		case to:
			out.WriteString(rest)
		}
	}
	return out.String() + strings.Join(old[at:], ""), nil
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add("", "\n\n")
	f.Fuzz(func(t *testing.T, a, b string) { checkDiff(t, a, b) })
}
