package zonefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/waymark-dns/waymark/internal/wire"
)

// reader hands out the records of chunks in file order and makes up TTLs that
// were stated in an earlier chunk. It lives on the goroutine that called Read.
type reader struct {
	o      Options
	each   func([]Record) error
	found  Findings
	ttl    uint32 // last TTL stated
	hasTTL bool
}

// Scan is Read with the problems apart, warnings too: err is for what ends the
// reading.
func Scan(path string, o Options, each func([]Record) error) (*Findings, error) {
	o = o.withDefaults()
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening zone file: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("opening zone file %s: it is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening zone file: %w", err)
	}
	defer f.Close()
	root := o.Root
	if root == "" {
		root = filepath.Dir(path)
	}
	if root, err = filepath.Abs(root); err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("opening zone file %s: finding its root folder: %w", path, err)
	}
	st := state{file: path, line: 1, origin: o.Origin}
	if st.origin == nil {
		st.origin = wire.Root
	}
	r := newReader(o, each)
	s := &splitter{o: o, root: root}
	if o.Workers == 1 || info.Size() <= int64(o.chunk) {
		err = r.inline(s, f, st)
	} else {
		err = r.parallel(s, f, st)
	}
	if errors.Is(err, errTooMany) {
		err = nil
	}
	return &r.found, err
}

func newReader(o Options, each func([]Record) error) *reader {
	return &reader{o: o, each: each, found: Findings{limit: o.Limits.Problems}}
}

func (r *reader) parser() *parser {
	return &parser{apex: r.o.Origin, max: r.o.Limits.Problems, classes: r.o.Classes, opaque: r.o.Opaque}
}

// inline reads on this goroutine alone, with one chunk.
func (r *reader) inline(s *splitter, f io.Reader, st state) error {
	var free []*chunk
	p := r.parser()
	s.take = func() *chunk {
		if n := len(free); n > 0 {
			c := free[n-1]
			free = free[:n-1]
			return c
		}
		return new(chunk)
	}
	s.give = func(c *chunk) error {
		p.run(c)
		err := r.hand(c)
		c.reset()
		free = append(free, c)
		return err
	}
	return s.file(f, st, 0)
}

// parallel reads with a goroutine that splits and several that parse. All have
// ended when it returns.
func (r *reader) parallel(s *splitter, f io.Reader, st state) error {
	chunks := 2*r.o.Workers + 2 // one in each parser's hands, one waiting for it, one split, one handed out
	var (
		free    = make(chan *chunk, chunks)
		work    = make(chan *chunk, chunks)
		ordered = make(chan *chunk, chunks)
		quit    = make(chan struct{})
		wg      sync.WaitGroup
		failed  error // of the splitter, read when ordered is closed
	)
	for range chunks {
		free <- &chunk{done: make(chan struct{}, 1)}
	}
	s.take = func() *chunk {
		select {
		case c := <-free:
			return c
		case <-quit:
			return nil
		}
	}
	s.give = func(c *chunk) error {
		ordered <- c
		work <- c
		return nil
	}
	for range r.o.Workers {
		wg.Go(func() { parseLoop(r.parser(), work) })
	}
	wg.Go(func() {
		defer close(ordered)
		defer close(work)
		failed = s.file(f, st, 0)
	})
	err := r.collect(ordered, free)
	close(quit)
	wg.Wait()
	if err == nil {
		err = failed
	}
	return err
}

// parseLoop parses chunks until there are no more.
func parseLoop(p *parser, work <-chan *chunk) {
	for c := range work {
		p.run(c)
		c.done <- struct{}{}
	}
}

// collect hands out chunks in order and gives them back.
func (r *reader) collect(ordered <-chan *chunk, free chan<- *chunk) error {
	for c := range ordered {
		<-c.done
		if err := r.hand(c); err != nil {
			return err
		}
		c.reset()
		free <- c
	}
	return nil
}

// hand gives the records of a parsed chunk to the caller.
func (r *reader) hand(c *chunk) error {
	for i := range c.records[:c.pending] {
		c.records[i].TTL = r.carriedTTL(&c.records[i])
	}
	if c.statedTTL {
		r.ttl, r.hasTTL = c.lastTTL, true
	}
	for _, list := range [2][]Problem{c.found.list, c.tail} {
		for _, p := range list {
			r.found.Add(p)
		}
	}
	if len(c.records) > 0 {
		if err := r.each(c.records); err != nil {
			return err
		}
	}
	if r.found.Full() {
		return errTooMany
	}
	return nil
}

// defaultTTL is for records before any stated TTL; other servers take an hour
// as well.
const defaultTTL = 3600

// carriedTTL is the TTL of a record that states none and has no $TTL above it:
// the last stated one (RFC 1035 §5.1). Before any, an SOA record's MINIMUM
// stands in, as before RFC 2308, or else an hour.
func (r *reader) carriedTTL(rec *Record) uint32 {
	if r.hasTTL {
		return r.ttl
	}
	r.ttl, r.hasTTL = defaultTTL, true
	if m, ok := soaMinimum(rec); ok {
		r.ttl = clampTTL(m)
	}
	r.found.Add(Problem{
		File: rec.File, Line: rec.Line, Level: Warning,
		Text: fmt.Sprintf("no TTL stated so far, taking %d", r.ttl), Mend: "put a $TTL line in front",
	})
	return r.ttl
}
