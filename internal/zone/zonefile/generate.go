package zonefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const generateMend = "write $GENERATE start-stop[/step] owner [TTL] [IN] type RDATA, with $ or ${offset,width,base} in owner and RDATA"

// generate puts chunks with the lines that a $GENERATE directive stands for in
// its place. It is no part of RFC 1035 but of BIND, and common.
func (s *splitter) generate(t *tokens, src *source) error {
	if t.next() != wordToken {
		return &syntaxError{"$GENERATE without a range", generateMend}
	}
	start, stop, step, ok := generateRange(string(t.tok))
	if !ok {
		return &syntaxError{fmt.Sprintf("range %q of $GENERATE", t.tok), generateMend}
	}
	if count := (stop-start)/step + 1; count > int64(s.o.Limits.Generate-s.made) {
		return &syntaxError{
			fmt.Sprintf("$GENERATE directives make more than %d records", s.o.Limits.Generate), "raise the limit or make the range smaller"}
	}
	at := *t
	line, err := restOfLine(t)
	*t = at
	if err != nil {
		return err
	}
	template, err := parseTemplate(line)
	if err != nil {
		return err
	}
	if template.size() > s.o.Limits.Record {
		return &syntaxError{fmt.Sprintf("$GENERATE makes records of more than %d bytes", s.o.Limits.Record), "make widths smaller"}
	}
	for i := start; i <= stop; {
		c := s.take()
		if c == nil {
			return errStopped
		}
		c.start = src.st
		c.start.sameLine = true
		for ; i <= stop && len(c.text) < chunkSize; i += step {
			c.text = template.append(c.text, i)
			s.made++
		}
		if err := s.giveMade(c, src); err != nil {
			return err
		}
	}
	return nil
}

// giveMade gives a chunk of lines made by $GENERATE.
func (s *splitter) giveMade(c *chunk, src *source) error {
	if s.spent += int64(len(c.text)); s.spent > s.o.Limits.Bytes {
		return fmt.Errorf("reading zone file %s: more than %d bytes of text", src.st.file, s.o.Limits.Bytes)
	}
	s.learnOwner(c.text, bytes.LastIndexByte(c.text[:len(c.text)-1], '\n')+1, src)
	return s.give(c)
}

// generateRange reads start-stop or start-stop/step.
func generateRange(text string) (start, stop, step int64, ok bool) {
	span, stepText, hasStep := strings.Cut(text, "/")
	from, to, hasTo := strings.Cut(span, "-")
	step = 1
	var errs [3]error
	start, errs[0] = strconv.ParseInt(from, 10, 32)
	stop, errs[1] = strconv.ParseInt(to, 10, 32)
	if hasStep {
		step, errs[2] = strconv.ParseInt(stepText, 10, 32)
	}
	ok = hasTo && errs == [3]error{} && start >= 0 && stop >= start && step > 0
	return start, stop, step, ok
}

// restOfLine joins the tokens up to the record's end with single blanks.
func restOfLine(t *tokens) ([]byte, error) {
	var line []byte
	for {
		k := t.next()
		if k != endToken && len(line) > 0 && !t.glued {
			line = append(line, ' ')
		}
		switch k {
		case wordToken:
			line = append(line, t.tok...)
		case quotedToken:
			line = append(append(append(line, '"'), t.tok...), '"')
		case endToken:
			return append(line, '\n'), nil
		default:
			return nil, &syntaxError{"parenthesis or quote without its counterpart", "balance parentheses and quotes"}
		}
	}
}

// template is the line of a $GENERATE directive: text and places for the
// number, in turns.
type template []part

type part struct {
	text   []byte // in front of the number
	number bool   // false in the last part
	offset int64
	width  int
	base   byte // d o x X n N
}

// size is about the number of bytes that a line takes.
func (t template) size() (n int) {
	for _, p := range t {
		n += len(p.text) + p.width + 1
	}
	return n
}

func (t template) append(dst []byte, i int64) []byte {
	for _, p := range t {
		dst = append(dst, p.text...)
		if p.number {
			dst = p.append(dst, i+p.offset)
		}
	}
	return dst
}

// append writes a number as the part says.
func (p *part) append(dst []byte, v int64) []byte {
	switch p.base {
	case 'd':
		return fmt.Appendf(dst, "%0*d", p.width, v)
	case 'o':
		return fmt.Appendf(dst, "%0*o", p.width, v)
	case 'x':
		return fmt.Appendf(dst, "%0*x", p.width, v)
	case 'X':
		return fmt.Appendf(dst, "%0*X", p.width, v)
	}
	// Nibbles, the lowest first, as ip6.arpa has them; width counts the dots.
	digits := "0123456789abcdef"
	if p.base == 'N' {
		digits = "0123456789ABCDEF"
	}
	start := len(dst)
	for first := true; first || v > 0 || len(dst)-start < p.width; first = false {
		if !first {
			dst = append(dst, '.')
			if len(dst)-start >= p.width && v == 0 {
				break
			}
		}
		dst = append(dst, digits[v&15])
		v >>= 4
	}
	return dst
}

// parseTemplate finds the places for the number in a line. $$ and \$ are a
// dollar sign, all other escapes stay.
func parseTemplate(line []byte) (template, error) {
	var t template
	var text []byte
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && line[i+1] == '$' || line[i] == '$' && line[i+1] == '$':
			text = append(text, '\\', '$')
			i++
		case line[i] == '\\':
			text = append(text, line[i], line[i+1])
			i++
		case line[i] == '$':
			p, width, ok := modifier(line[i+1:])
			if !ok {
				return nil, &syntaxError{"modifier of $ in $GENERATE", generateMend}
			}
			p.text = text
			t, text = append(t, p), nil
			i += width
		default:
			text = append(text, line[i])
		}
	}
	return append(t, part{text: text}), nil
}

// modifier reads what may follow a $: {offset,width,base}. Width is the number
// of bytes it takes.
func modifier(line []byte) (p part, width int, ok bool) {
	p = part{number: true, base: 'd'}
	if line[0] != '{' {
		return p, 0, true
	}
	inner, _, closed := bytes.Cut(line[1:], []byte("}"))
	fields := strings.Split(string(inner), ",")
	if !closed || len(fields) > 3 {
		return p, 0, false
	}
	var errs [2]error
	p.offset, errs[0] = strconv.ParseInt(fields[0], 10, 32)
	if len(fields) > 1 {
		p.width, errs[1] = strconv.Atoi(fields[1])
	}
	if len(fields) > 2 && len(fields[2]) == 1 {
		p.base = fields[2][0]
	} else if len(fields) > 2 {
		return p, 0, false
	}
	ok = errs == [2]error{} && p.width >= 0 && p.width <= 255 && strings.IndexByte("doxXnN", p.base) >= 0
	return p, len(inner) + 2, ok
}
