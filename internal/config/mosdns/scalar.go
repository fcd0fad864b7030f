package mosdns

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
)

// word is a scalar with the type that YAML 1.2 gives it. mosdns turns it into the
// type of the field as mapstructure's WeaklyTypedInput does, and so does this.
type word struct {
	kind reflect.Kind // String, Bool, Int64, Uint64 or Float64

	text  string
	yes   bool
	whole int64
	large uint64
	real  float64
}

// number is what has the form of a number without a base.
var number = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// wordOf finds the type of a scalar.
func wordOf(n *tree.Node) word {
	w := word{kind: reflect.String, text: n.Text}
	if !n.Plain || n.Text == "" {
		return w
	}
	switch n.Text {
	case "true", "True", "TRUE":
		return word{kind: reflect.Bool, yes: true}
	case "false", "False", "FALSE":
		return word{kind: reflect.Bool}
	}
	if !strings.ContainsRune("+-.0123456789", rune(n.Text[0])) {
		return w
	}
	digits := strings.ReplaceAll(n.Text, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return word{kind: reflect.Int64, whole: i}
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return word{kind: reflect.Uint64, large: u}
	}
	if number.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return word{kind: reflect.Float64, real: f}
		}
	}
	return w
}

// string is the word as text: numbers in decimal, true as 1.
func (w word) string() string {
	switch w.kind {
	case reflect.Bool:
		if w.yes {
			return "1"
		}
		return "0"
	case reflect.Int64:
		return strconv.FormatInt(w.whole, 10)
	case reflect.Uint64:
		return strconv.FormatUint(w.large, 10)
	case reflect.Float64:
		return strconv.FormatFloat(w.real, 'f', -1, 64)
	}
	return w.text
}

// bool is the word as true or false: a number is true unless it is 0.
func (w word) bool() (v, ok bool) {
	switch w.kind {
	case reflect.Bool:
		return w.yes, true
	case reflect.String:
		if w.text == "" {
			return false, true
		}
		v, err := strconv.ParseBool(w.text)
		return v, err == nil
	}
	f, ok := w.float()
	return f != 0, ok
}

// int is the word as a whole number: a fraction is cut off.
func (w word) int() (int64, bool) {
	switch w.kind {
	case reflect.Bool:
		if w.yes {
			return 1, true
		}
		return 0, true
	case reflect.Int64:
		return w.whole, true
	case reflect.Float64:
		const end = 1 << 63
		return int64(w.real), w.real >= -end && w.real < end
	case reflect.String:
		if w.text == "" {
			return 0, true
		}
		i, err := strconv.ParseInt(w.text, 0, 64)
		return i, err == nil
	}
	return 0, false
}

// uint is the word as a whole number that is not negative.
func (w word) uint() (uint64, bool) {
	switch w.kind {
	case reflect.Uint64:
		return w.large, true
	case reflect.String:
		if w.text == "" {
			return 0, true
		}
		u, err := strconv.ParseUint(w.text, 0, 64)
		return u, err == nil
	}
	i, ok := w.int()
	return uint64(i), ok && i >= 0
}

// float is the word as a number.
func (w word) float() (float64, bool) {
	switch w.kind {
	case reflect.Uint64:
		return float64(w.large), true
	case reflect.Float64:
		return w.real, true
	case reflect.String:
		if w.text == "" {
			return 0, true
		}
		f, err := strconv.ParseFloat(w.text, 64)
		return f, err == nil
	}
	i, ok := w.int()
	return float64(i), ok
}

// set puts the word into a field; want is what the field would have liked, empty
// where it could be done.
func (w word) set(v reflect.Value) (want string) {
	ok := false
	switch v.Kind() {
	case reflect.String:
		v.SetString(w.string())
		return ""
	case reflect.Bool:
		var b bool
		want = "true or false"
		if b, ok = w.bool(); ok {
			v.SetBool(b)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		want = "a whole number"
		if i, ok = w.int(); ok && !v.OverflowInt(i) {
			v.SetInt(i)
			return ""
		}
		ok = false
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var u uint64
		want = "a whole number from 0"
		if u, ok = w.uint(); ok && !v.OverflowUint(u) {
			v.SetUint(u)
			return ""
		}
		ok = false
	case reflect.Float32, reflect.Float64:
		var f float64
		want = "a number"
		if f, ok = w.float(); ok {
			v.SetFloat(f)
		}
	default:
		return "nothing that can be written here"
	}
	if ok {
		return ""
	}
	return want
}
