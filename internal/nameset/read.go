package nameset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// maxLine is the longest line that files may have, in octets, its end included.
const maxLine = 64 << 10

// Errors of files of names.
var (
	ErrSpace = errors.New("white space within an expression: one expression a line")
	ErrLine  = errors.New("line longer than 64 KiB")
)

// ReadFile is Read of the file at path.
func (b *Builder) ReadFile(path string, def Kind) error {
	return readFile(path, func(r io.Reader) error { return b.Read(r, def) })
}

// ReadValuesFile is ReadValues of the file at path.
func (b *Builder) ReadValuesFile(path string, def Kind, value func(rest []string) (uint32, error)) error {
	return readFile(path, func(r io.Reader) error { return b.ReadValues(r, def, value) })
}

func readFile(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading names: %w", err)
	}
	defer f.Close()
	if err := read(f); err != nil {
		return fmt.Errorf("reading names %s: %w", path, err)
	}
	return nil
}

// Read adds the expressions of r, one a line, with the value 0. What stands
// behind a # is a comment; blank lines are skipped. Expressions without a kind
// are of the kind def. An error names the line; the lines before it are added.
func (b *Builder) Read(r io.Reader, def Kind) error {
	return lines(r, func(line []byte) error {
		if hasSpace(line) {
			return ErrSpace
		}
		return b.addText(line, def, 0)
	})
}

// ReadValues is Read of lines that have an expression and more words behind it.
// These go to value, which returns the value of the expression; it may be called
// with none, and owns the slice.
func (b *Builder) ReadValues(r io.Reader, def Kind, value func(rest []string) (uint32, error)) error {
	return lines(r, func(line []byte) error {
		words := strings.Fields(string(line))
		v, err := value(words[1:])
		if err != nil {
			return err
		}
		return b.addText([]byte(words[0]), def, v)
	})
}

func (b *Builder) addText(text []byte, def Kind, value uint32) error {
	b.worked()
	kind, pattern, err := splitExpr(text, def)
	if err != nil {
		return err
	}
	return b.add(kind, pattern, value)
}

// lines calls do with each line that holds something, without comment and white
// space around it. The line is do's until it returns.
func lines(r io.Reader, do func(line []byte) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, maxLine), maxLine)
	n := 0
	for scanner.Scan() {
		n++
		line := scanner.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // the byte order mark that some editors write
		}
		line, _, _ = bytes.Cut(line, []byte{'#'})
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := do(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: %w", n+1, ErrLine)
	case err != nil:
		return fmt.Errorf("reading line %d: %w", n+1, err)
	}
	return nil
}

// hasSpace tells whether there is white space in line, that of Unicode too.
func hasSpace(line []byte) bool {
	for _, c := range line {
		if c <= ' ' || c >= 0x80 {
			return bytes.IndexFunc(line, unicode.IsSpace) >= 0
		}
	}
	return false
}
