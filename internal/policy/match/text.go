package match

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Text matches requests that have a certain text, such as the server's name in
// TLS.
type Text struct {
	get  func(r *serve.Request) string
	test func(text string) bool
}

// Match is part of policy.Matcher.
func (m Text) Match(r *serve.Request) bool { return m.test(m.get(r)) }

// makeText reads "source operation argument…". Sources are url_path, server_name
// and $VARIABLE; operations zl (has no length), eq, prefix, suffix, contains and regexp, true
// for any of their arguments.
func makeText(_ *Env, args string) (policy.Matcher, error) {
	words := strings.Fields(args)
	if len(words) < 2 {
		return nil, fmt.Errorf("reading %q: write a source, an operation and its arguments", args)
	}
	m := Text{}
	switch source := words[0]; {
	case source == "url_path":
		m.get = func(r *serve.Request) string { return r.Peer.Path }
	case source == "server_name":
		m.get = func(r *serve.Request) string { return r.Peer.ServerName }
	case strings.HasPrefix(source, "$"):
		value := os.Getenv(source[1:])
		m.get = func(*serve.Request) string { return value }
	default:
		return nil, fmt.Errorf("reading %q: no source %q: there are url_path, server_name and $VARIABLE", args, source)
	}
	var err error
	m.test, err = textTest(words[1], words[2:])
	return m, err
}

func textTest(op string, args []string) (func(string) bool, error) {
	one := func(holds func(text, arg string) bool) (func(string) bool, error) {
		return func(text string) bool {
			return slices.ContainsFunc(args, func(a string) bool { return holds(text, a) })
		}, nil
	}
	switch op {
	case "zl":
		return func(text string) bool { return text == "" }, nil
	case "eq":
		return one(func(text, a string) bool { return text == a })
	case "prefix":
		return one(strings.HasPrefix)
	case "suffix":
		return one(strings.HasSuffix)
	case "contains":
		return one(strings.Contains)
	case "regexp":
		var all []*regexp.Regexp
		for _, a := range args {
			re, err := regexp.Compile(a)
			if err != nil {
				return nil, fmt.Errorf("reading regexp: %w", err)
			}
			all = append(all, re)
		}
		return func(text string) bool {
			return slices.ContainsFunc(all, func(re *regexp.Regexp) bool { return re.MatchString(text) })
		}, nil
	}
	return nil, fmt.Errorf("no operation %q: there are zl, eq, prefix, suffix, contains and regexp", op)
}
