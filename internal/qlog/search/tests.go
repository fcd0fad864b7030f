package search

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
)

func nameTest(values []string) (test, error) {
	names, err := parseNames(values)
	return test{col: colName, exact: names}, err
}

func suffixTest(values []string) (test, error) {
	names, err := parseNames(values)
	return test{col: colName, accept: func(s string) bool {
		for _, n := range names {
			if below(s, n) {
				return true
			}
		}
		return false
	}}, err
}

// below tells whether a name is the other or below it; both are in the
// presentation format of the log.
func below(name, top string) bool {
	if top == "." || name == top {
		return true
	}
	at := len(name) - len(top) - 1
	return at > 0 && name[at] == '.' && name[at+1:] == top && !escaped(name, at)
}

func containsTest(values []string) (test, error) {
	for i, v := range values {
		values[i] = strings.ToLower(v)
	}
	return test{col: colName, accept: func(s string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(s, v) })
	}}, nil
}

// parseNames is names as the log has them.
func parseNames(values []string) ([]string, error) {
	names := make([]string, 0, len(values))
	for _, v := range values {
		n, err := wire.ParseName(v)
		if err != nil {
			return nil, &valueError{v, "not a name: " + cause(err), ""}
		}
		names = append(names, n.Fold().String())
	}
	return names, nil
}

// cause is the innermost error, without what was being done.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

func typeTest(values []string) (test, error) {
	for i, v := range values {
		n, err := wire.ParseType(v)
		if err != nil {
			return test{}, &valueError{v, "not a type", ""}
		}
		values[i] = wire.TypeString(n)
	}
	return test{col: colType, exact: values}, nil
}

func upperTest(col int) func([]string) (test, error) {
	return func(values []string) (test, error) {
		for i, v := range values {
			values[i] = strings.ToUpper(v)
		}
		return test{col: col, exact: values}, nil
	}
}

func lowerTest(col int) func([]string) (test, error) {
	return func(values []string) (test, error) {
		for i, v := range values {
			values[i] = strings.ToLower(v)
		}
		return test{col: col, exact: values}, nil
	}
}

func ruleTest(values []string) (test, error) {
	return test{col: colRule, accept: func(s string) bool {
		return slices.ContainsFunc(values, func(v string) bool {
			rest, ok := strings.CutPrefix(s, v)
			return ok && (rest == "" || rest[0] == ':' || rest[0] == ' ')
		})
	}}, nil
}

func urlTest(col int) func([]string) (test, error) {
	return func(values []string) (test, error) {
		return test{col: col, accept: func(s string) bool {
			_, rest, _ := strings.Cut(s, "://")
			return s != "" && (slices.Contains(values, s) || slices.Contains(values, rest))
		}}, nil
	}
}

// pseudonym is what the log's pseudonyms of clients begin with.
const pseudonym = "c-"

func clientTest(values []string) (test, error) {
	t := test{col: colClient}
	var addresses []string
	for _, v := range values {
		if strings.HasPrefix(v, pseudonym) {
			t.exact = append(t.exact, v)
		} else {
			addresses = append(addresses, v)
		}
	}
	set, err := parsePrefixes(addresses)
	if err != nil {
		return test{}, err
	}
	var wide []netip.Prefix
	for _, p := range set {
		if p.IsSingleIP() {
			t.exact = append(t.exact, p.Addr().String())
		} else {
			wide = append(wide, p)
		}
	}
	if wide != nil {
		t.accept = func(s string) bool { return slices.Contains(t.exact, s) || inAny(wide, s) }
	}
	return t, nil
}

func answerTest(values []string) (test, error) {
	set, err := parsePrefixes(values)
	return test{col: colAnswers, accept: func(s string) bool {
		for a := range strings.FieldsSeq(s) {
			if inAny(set, a) {
				return true
			}
		}
		return false
	}}, err
}

func inAny(set []netip.Prefix, s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && slices.ContainsFunc(set, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parsePrefixes reads addresses and prefixes; an address is a prefix of all its
// bits.
func parsePrefixes(values []string) ([]netip.Prefix, error) {
	set := make([]netip.Prefix, 0, len(values))
	for _, v := range values {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(v); err == nil {
				a = a.Unmap().WithZone("")
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return nil, &valueError{v, "neither an address nor a prefix", ""}
		}
		set = append(set, p.Masked())
	}
	return set, nil
}

func slowerTest(values []string) (test, error) {
	d, ok := parseDuration(values[0])
	if !ok || d < 0 {
		return test{}, errors.New("not a duration such as 50ms or 1.5s")
	}
	least := d.Microseconds()
	if least >= math.MaxUint32 {
		least = math.MaxUint32
	}
	return test{col: colLatency, number: func(n uint32) bool { return int64(n) > least }}, nil
}

func blockedTest(values []string) (test, error) {
	want, err := parseBool(values[0])
	return test{col: colEDE, accept: func(s string) bool {
		return (s == "15" || s == "16" || s == "17" || s == "18") == want
	}}, err
}

func failedTest(values []string) (test, error) {
	want, err := parseBool(values[0])
	return test{col: colRcode, accept: func(s string) bool { return (s == "SERVFAIL") == want }}, err
}

func parseBool(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errors.New("neither true nor false")
	}
	return b, nil
}
