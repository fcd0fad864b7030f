package tree

import (
	"strings"
	"testing"
)

// TestColons: what YAML 1.2.2 §7.3.3 takes for plain text, also in a list inside
// braces, where the library does not.
func TestColons(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"URLs", "a: {b: [udp://192.0.2.1:53, tcp://192.0.2.1:53]}", `{a: {b: [udp://192.0.2.1:53 tcp://192.0.2.1:53]}}`},
		{"IPv6", "a: {b: [fe80::1, ::1, 2001:db8::1/32]}", `{a: {b: [fe80::1 ::1 2001:db8::1/32]}}`},
		{"brackets within", "a: [{b: [[x:1], y:2]}]", `{a: [{b: [[x:1] y:2]}]}`},
		{"letters of two octets", "é: {é: [é:é, é:é]}", `{é: {é: [é:é é:é]}}`},
		{"lines", "a: {b: [x:1,\n  y:2\n ]}", `{a: {b: [x:1 y:2]}}`},
		{"keys", "a: {b: [x: 1, \"y\":2, z : 3]}", `{a: {b: [{x: 1} {y: 2} {z: 3}]}}`},
		{"keys of mappings", "a: {b: [{x: u:1, y: 2}]}", `{a: {b: [{x: u:1, y: 2}]}}`},
		{"no braces", "a: [udp://192.0.2.1:53, ::1]", `{a: [udp://192.0.2.1:53 ::1]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Source{lines: strings.Split(c.text, "\n")}
			tr := &yaml{s: r, anchors: map[string]*Node{}}
			root, trouble := tr.parse(c.text, 0)
			if trouble != nil || len(r.problems) > 0 {
				t.Fatal(trouble, r.problems)
			}
			if got := written(root); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// written is a node on one line.
func written(n *Node) string {
	var parts []string
	switch n.Kind {
	case List:
		for _, item := range n.Items {
			parts = append(parts, written(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case Mapping:
		for _, p := range n.Pairs {
			parts = append(parts, p.Key+": "+written(p.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return n.Text
	}
}
