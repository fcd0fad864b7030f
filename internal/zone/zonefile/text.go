package zonefile

import (
	"errors"
	"strings"
)

// ReadText is Read of records that are in memory already; problems give them that
// name in place of a file's. $INCLUDE is an error there, and without an origin so
// is a relative name in front of an $ORIGIN.
func ReadText(name, text string, o Options, each func([]Record) error) error {
	o = o.withDefaults()
	r := &reader{o: o, each: each, found: Findings{limit: o.Limits.Problems}}
	err := r.inline(&splitter{o: o}, strings.NewReader(text), state{file: name, line: 1, origin: o.Origin})
	if errors.Is(err, errTooMany) {
		err = nil
	}
	if err == nil && r.found.count[Error] > 0 {
		err = &ProblemsError{Problems: r.found.list}
	}
	return err
}
