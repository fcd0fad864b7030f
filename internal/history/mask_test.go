package history

import (
	"errors"
	"strings"
	"testing"

	"github.com/waymark-dns/waymark/internal/config/tree"
)

func TestMask(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing", "w.yaml", "listen: [udp://127.0.0.1:53] # all\n", "listen: [udp://127.0.0.1:53] # all\n"},
		{"plain", "w.yaml", "limits:\n  cookies: {secret: s3cret, on: true} # x\n", "limits:\n  cookies: {secret: \"***\", on: true} # x\n"},
		{"in quotes", "w.yaml", "api: {token: \"s3cret \\\" s3cret\", http: \":80\"}\n", "api: {token: \"***\", http: \":80\"}\n"},
		{"in single quotes", "w.yaml", "api:\n  token: 's3cret''s3cret'\n  http: x\n", "api:\n  token: \"***\"\n  http: x\n"},
		{"a list", "w.yaml", "tokens: [s3cret-a, 's3cret-b']\n", "tokens: [\"***\", \"***\"]\n"},
		{"a list of mappings", "w.yaml", "tokens:\n  - {name: ann, sha256: s3cret, scope: read}\n  - name: bob\n    hash: s3cret\n",
			"tokens:\n  - {name: ann, sha256: \"***\", scope: read}\n  - name: bob\n    hash: \"***\"\n"},
		{"a block", "w.yaml", "a:\n  private-key: |\n    s3cret\n    s3cret\n  b: 1\n", "a:\n  private-key: \"***\"\n  b: 1\n"},
		{"on lines", "w.yaml", "a:\n  password: s3cret\n    s3cret\n  b: 1\n", "a:\n  password: \"***\"\n  b: 1\n"},
		{"an alias", "w.yaml", "a: &x s3cret\nsecret: *x\nb: 1\n", "a: &x \"***\"\nsecret: *x\nb: 1\n"},
		{"elsewhere", "w.yaml", "# it was s3cret\ntoken: s3cret\n", "# it was ***\ntoken: \"***\"\n"},
		{"in a comment", "w.yaml", "a: 1\n  # token: s3cret # x\n", "a: 1\n  # token: ***\n"},
		{"in a URL", "w.yaml", "proxy: socks5://ann:s3cret@192.0.2.1:1080\n", "proxy: socks5://***@192.0.2.1:1080\n"},
		{"a number", "w.yaml", "psk: 12\nb: 12\n", "psk: \"***\"\nb: 12\n"},
		{"empty", "w.yaml", "token:\nb: 1\n", "token:\nb: 1\n"},
		{"other names", "w.yaml", "API_TOKEN: s3cret\nmy-password-2: s3cret\n", "API_TOKEN: \"***\"\nmy-password-2: \"***\"\n"},
		{"behind letters of more octets", "w.yaml", "a: {ä: öü, token: s3cret, b: ß}\n", "a: {ä: öü, token: \"***\", b: ß}\n"},
		{"line ends", "w.yaml", "a: 1\r\ntoken: s3cret\r\n", "a: 1\ntoken: \"***\"\n"},
		{"an order mark", "w.yaml", "\ufefftoken: s3cret\n", "token: \"***\"\n"},
		{"at the end", "w.yaml", "token: s3cret", "token: \"***\""},
		{"JSON", "w.json", "{\"api\": {\"token\": \"s3cret\", \"http\": \"x\"}}", "{\"api\": {\"token\": \"***\", \"http\": \"x\"}}"},
		{"JSON, escaped", "w.json", "{\"token\": \"s3cret\\u0041\\\"\", \"b\": 1}", "{\"token\": \"***\", \"b\": 1}"},
		{"TOML", "w.toml", "[api]\ntoken = \"s3cret\" # x\nhttp = 'x'\n", "[api]\ntoken = \"***\" # x\nhttp = 'x'\n"},
		{"TOML, on lines", "w.toml", "secret = \"\"\"\ns3cret\"\"\"\nb = 1\n", "secret = \"***\"\nb = 1\n"},
	} {
		got, err := Mask(c.file, []byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v\nwant %q", c.name, got, err, c.want)
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s: the secret is told: %q", c.name, got)
		}
	}
	for _, text := range []string{"token: [s3cret\n", "\xff\xfe"} {
		if got, err := Mask("w.yaml", []byte(text)); !errors.Is(err, ErrUnmasked) || got != "" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// Wherever a secret stands, no part of it is left that is long enough to be seen.
func FuzzMask(f *testing.F) {
	f.Add("a: 1\n", "s3cretwords")
	f.Add("a: {b: c}\nb: &x y\n", "\"s3cretwords\"")
	f.Add("#\n\n", "|\n  s3cretwords\n  s3cretwords")
	f.Add("", "[s3cretwords, {x: 's3cretwords'}]")
	f.Fuzz(func(t *testing.T, front, value string) {
		text := front + "\ntoken: " + value + "\nlast: 1\n"
		masked, err := Mask("w.yaml", []byte(text))
		if err != nil {
			return
		}
		src := &tree.Source{File: "w.yaml", Loose: true}
		roots, _ := src.Parse([]byte(text))
		found := &finder{}
		for _, root := range roots {
			found.walk(root, false)
		}
		for _, n := range found.secrets {
			if len(n.Text) >= 4 && !strings.Contains(n.Text, hidden) && !strings.Contains(hidden, n.Text) && !strings.Contains(`"`+hidden+`"`, n.Text) &&
				strings.Contains(masked, n.Text) {
				t.Fatalf("%q is masked as %q, which has %q", text, masked, n.Text)
			}
		}
	})
}
