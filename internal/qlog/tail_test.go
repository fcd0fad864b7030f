package qlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tailOf is tab as a tail of blocks of so many rows, and where each block ends.
func tailOf(tab *table, rows int) (b []byte, ends []int) {
	b = tailHeader()
	all := tab.rows
	var m mark
	for len(tab.rows) > 0 && m.rows < len(all) {
		tab.rows = all[:min(m.rows+rows, len(all))]
		b = tab.appendBlock(b, m)
		m = tab.mark()
		ends = append(ends, len(b))
	}
	tab.rows = all
	return b, ends
}

// rowsOf is the rows of a table.
func rowsOf(t *table) (rows []Row) {
	for i := range t.rows {
		rows = append(rows, t.row(i))
	}
	return rows
}

func TestTail(t *testing.T) {
	tab := filled(t, 1000, 300, 1000, true, true)
	b, _ := tailOf(tab, 170)
	path := filepath.Join(t.TempDir(), fileName(1, tailExt))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []Row
	if err := ReadTail(path, func(r *Row) bool { got = append(got, *r); return true }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, rowsOf(tab)) {
		t.Fatalf("%d rows of %d come back, or others", len(got), len(tab.rows))
	}
	n := 0
	if err := ReadTail(path, func(*Row) bool { n++; return n < 10 }); err != nil || n != 10 {
		t.Errorf("stopped after %d rows: %v", n, err)
	}
}

// A program may be killed at any octet: what was written before the last block is
// there, and nothing is an error.
func TestTailTorn(t *testing.T) {
	tab := filled(t, 60, 20, 1000, true, true)
	b, ends := tailOf(tab, 20)
	for size := range len(b) + 1 {
		got := newTable()
		whole, err := readTail(bytes.NewReader(b[:size]), got)
		want := 0
		for i, end := range ends {
			if size >= end {
				want = 20 * (i + 1)
			}
		}
		if err != nil || len(got.rows) != want || whole > int64(size) {
			t.Fatalf("%d octets of %d: %d rows, want %d, %d octets are whole: %v", size, len(b), len(got.rows), want, whole, err)
		}
	}
}

// An octet that is not as it was ends the tail with an error, and what was before it
// is there.
func TestTailDamaged(t *testing.T) {
	tab := filled(t, 60, 20, 1000, true, true)
	b, ends := tailOf(tab, 20)
	for at := tailHead; at < len(b); at++ {
		broken := slices.Clone(b)
		broken[at] ^= 0x55
		got := newTable()
		_, err := readTail(bytes.NewReader(broken), got)
		block := 0
		for block < len(ends) && at >= ends[block] {
			block++
		}
		if len(got.rows) != 20*block {
			t.Fatalf("octet %d: %d rows, want %d (%v)", at, len(got.rows), 20*block, err)
		}
		if !slices.Equal(rowsOf(got), rowsOf(tab)[:20*block]) {
			t.Fatalf("octet %d: other rows", at)
		}
	}
	for name, c := range map[string]struct {
		head string
		want error
	}{
		"no tail":         {"PAR1xxxxxxxxxxxxxxxx", errNoTail},
		"another version": {tailMagic + "\x02\x00\x00\x00\x00\x00\x00\x00", errVersion},
	} {
		if _, err := readTail(bytes.NewReader([]byte(c.head)), newTable()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing that is in a file makes reading it fail otherwise than with an error, nor
// take memory that the file does not have.
func FuzzTail(f *testing.F) {
	tab := filled(f, 20, 5, 1000, true, true)
	b, _ := tailOf(tab, 7)
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(tailHeader())
	f.Fuzz(func(t *testing.T, b []byte) {
		got := newTable()
		whole, _ := readTail(bytes.NewReader(b), got)
		if whole > int64(len(b)) {
			t.Fatalf("%d octets of %d are whole", whole, len(b))
		}
		for i := range got.rows {
			got.row(i)
		}
		// The body without its checksum.
		got.reset()
		got.readBlock(b)
		for i := range got.rows {
			got.row(i)
		}
	})
}
