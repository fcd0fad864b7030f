package search

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key is one key of a filter: a flag of the command line, a parameter of the API
// and a row of the manual.
type Key struct {
	Name    string
	Example string
	Help    string

	single bool                                           // the last word: it takes one value
	test   func(values []string) (test, error)            // makes a condition
	set    func(f *Filter, v string, now time.Time) error // or a bound, an order
}

// maxLimit is the largest limit: what is more is an export.
const maxLimit = 10_000_000

// keys is the table of everything that a filter may say.
var keys = []Key{
	{Name: "from", Example: "1h", Help: "Not before this time: 2026-01-31T12:00:00Z, 2026-01-31, 14:30, or how long ago: 90s, 1h, 2d.", single: true,
		set: func(f *Filter, v string, now time.Time) (err error) { f.From, err = parseTime(v, now); return err }},
	{Name: "until", Example: "2026-01-31", Help: "Before this time.", single: true,
		set: func(f *Filter, v string, now time.Time) (err error) { f.Until, err = parseTime(v, now); return err }},
	{Name: "client", Example: "192.0.2.0/24", Help: "From one of these addresses or prefixes.", test: clientTest},
	{Name: "name", Example: "www.example.org", Help: "For one of these names.", test: nameTest},
	{Name: "suffix", Example: "example.org", Help: "For one of these names, or a name below.", test: suffixTest},
	{Name: "contains", Example: "track", Help: "For a name that has one of these texts in it.", test: containsTest},
	{Name: "type", Example: "A,AAAA", Help: "For one of these types.", test: typeTest},
	{Name: "rcode", Example: "NXDOMAIN", Help: "Answered with one of these response codes.", test: upperTest(colRcode)},
	{Name: "source", Example: "cache,stale", Help: "Answered from one of these: zone, local, cache, stale, forward, refused, error, none.", test: lowerTest(colSource)},
	{Name: "rule", Example: "waymark.yaml:12", Help: "Decided by one of these rules: a file and line, or a file.", test: ruleTest},
	{Name: "upstream", Example: "udp://192.0.2.53", Help: "Answered by one of these upstreams, with or without what stands before ://.", test: urlTest(colUpstream)},
	{Name: "listener", Example: "udp://0.0.0.0:53", Help: "Received by one of these listeners, with or without what stands before ://.", test: urlTest(colListener)},
	{Name: "protocol", Example: "tcp", Help: "Over one of these: udp, tcp.", test: lowerTest(colProtocol)},
	{Name: "answer", Example: "192.0.2.1", Help: "With one of these addresses, or an address of these prefixes, in the answer.", test: answerTest},
	{Name: "slower", Example: "50ms", Help: "Answered after more than this.", single: true, test: slowerTest},
	{Name: "blocked", Example: "true", Help: "Blocked, censored, filtered or prohibited (RFC 8914 §4.16 to §4.19); false: all others.", single: true, test: blockedTest},
	{Name: "failed", Example: "true", Help: "Answered with SERVFAIL; false: all others.", single: true, test: failedTest},
	{Name: "order", Example: "oldest", Help: "Which come first: newest or oldest.", single: true, set: setOrder},
	{Name: "limit", Example: "100", Help: "So many rows at most; 0 is all.", single: true, set: setLimit},
	{Name: "cursor", Example: "1790000000000000-1", Help: "Go on behind this place, as the answer before told it.", single: true, set: setCursor},
}

// Keys is the table of everything that a filter may say; the caller may keep and
// change it.
func Keys() []Key { return slices.Clone(keys) }

// FilterError is a key or a value that a filter does not take.
type FilterError struct {
	Key, Value string
	Problem    string
	Near       string // the known word that is nearest, empty if none is near
}

// Error says key, value, problem and the nearest known word.
func (e *FilterError) Error() string {
	text := fmt.Sprintf("reading filter: %s=%s: %s", e.Key, e.Value, e.Problem)
	if e.Near != "" {
		text += "; did you mean " + e.Near + "?"
	}
	return text
}

// ParseFilter reads a filter from keys and their values, as a query string or
// flags give them. Several values of one key, in one text with commas between or
// in more texts, are alternatives; empty texts are as if they were not there. The
// error joins one *FilterError for each problem. now is what relative times count
// from, and its zone is that of times without one.
func ParseFilter(values map[string][]string, now time.Time) (Filter, error) {
	var f Filter
	var problems []error
	for i := range keys {
		k := &keys[i]
		if err := k.read(&f, split(values[k.Name]), now); err != nil {
			problems = append(problems, err)
		}
	}
	known := make([]string, 0, len(keys))
	for i := range keys {
		known = append(known, keys[i].Name)
	}
	for name, v := range values {
		if !slices.Contains(known, name) {
			problems = append(problems, &FilterError{name, strings.Join(v, ","), "unknown key", nearest(name, known)})
		}
	}
	if f.From != 0 && f.Until != 0 && f.From >= f.Until && len(problems) == 0 {
		problems = append(problems, &FilterError{"until", strings.Join(values["until"], ","), "not behind from", ""})
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return f, errors.Join(problems...)
}

// split is the values of texts with commas, without empty ones.
func split(texts []string) (values []string) {
	for _, text := range texts {
		for v := range strings.SplitSeq(text, ",") {
			if v = strings.TrimSpace(v); v != "" {
				values = append(values, v)
			}
		}
	}
	return values
}

// read takes the values of one key into the filter. The error is a *FilterError.
func (k *Key) read(f *Filter, values []string, now time.Time) error {
	if len(values) == 0 {
		return nil
	}
	if k.single && len(values) > 1 {
		return &FilterError{k.Name, strings.Join(values, ","), "takes one value", ""}
	}
	if k.set != nil {
		return k.problem(k.set(f, values[0], now), values)
	}
	t, err := k.test(values)
	if err == nil {
		f.tests = append(f.tests, t)
	}
	return k.problem(err, values)
}

// problem makes an error the problem of this key.
func (k *Key) problem(err error, values []string) error {
	if err == nil {
		return nil
	}
	p := &FilterError{Key: k.Name, Value: strings.Join(values, ","), Problem: err.Error()}
	var value *valueError
	if errors.As(err, &value) {
		p.Value, p.Near = value.value, value.near
	}
	return p
}

// valueError is what is wrong with one value of several.
type valueError struct{ value, text, near string }

func (e *valueError) Error() string { return e.text }

func setOrder(f *Filter, v string, _ time.Time) error {
	orders := []string{"newest", "oldest"}
	if !slices.Contains(orders, v) {
		return &valueError{v, "neither newest nor oldest", nearest(v, orders)}
	}
	f.Oldest = v == "oldest"
	return nil
}

func setLimit(f *Filter, v string, _ time.Time) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > maxLimit {
		return fmt.Errorf("not a number from 0 to %d", maxLimit)
	}
	f.Limit = n
	return nil
}

func setCursor(f *Filter, v string, _ time.Time) error {
	c, ok := parseCursor(v)
	if !ok {
		return errors.New("not a cursor: give what an answer called next")
	}
	f.After = c
	return nil
}
