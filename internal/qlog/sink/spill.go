package sink

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/durable"
)

// A spill file is one batch: the mark with the version of the format, how many rows
// and octets there are, the SHA-256 of those two numbers and the octets, and the
// octets, which are lines. Numbers are big-endian.
const (
	spillMark   = "WMSPILL\x01"
	spillHead   = len(spillMark) + 4 + 4 + sha256.Size
	spillSuffix = ".spill"
	// maxSpilled is more than any batch. It bounds what a damaged file can make us
	// allocate.
	maxSpilled = 1 << 30
)

var (
	errClaimed = errors.New("another sink is using the folder")
	errDamaged = errors.New("the file is damaged")
)

// spill is a folder of batches that wait for a peer. Of the sink's goroutine alone,
// but for its making.
type spill struct {
	dir string
	max int64

	lock  *os.File // nil: the folder is not ours
	files []spilled
	total int64 // octets of files
	next  uint64
}

// spilled is one file, by its number.
type spilled struct {
	number uint64
	size   int64
	rows   int
}

// openSpill makes the folder.
func openSpill(dir string, size int64) (*spill, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the spill folder: %w", err)
	}
	return &spill{dir: dir, max: size}, nil
}

// holding tells whether there are batches. A nil spill has none.
func (s *spill) holding() bool { return s != nil && len(s.files) > 0 }

func (s *spill) size() int64 { return s.total }

// claim makes the folder ours and finds what is in it. errClaimed: it is another's,
// for now.
func (s *spill) claim() error {
	if s.lock != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("claiming the spill folder: %w", err)
	}
	if err := durable.Lock(f); err != nil {
		_ = f.Close() // nothing was written
		return errClaimed
	}
	if err := s.scan(); err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	s.lock = f
	return nil
}

// scan lists the files, the oldest first.
func (s *spill) scan() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("reading the spill folder: %w", err)
	}
	s.files, s.total = nil, 0
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), spillSuffix)
		number, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || digits != name(number) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("reading the spill folder: %w", err)
		}
		s.files = append(s.files, spilled{number, info.Size(), s.rowsOf(number)})
		s.total += info.Size()
		s.next = max(s.next, number+1)
	}
	slices.SortFunc(s.files, func(a, b spilled) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return nil
}

func name(number uint64) string { return fmt.Sprintf("%016x", number) }

func (s *spill) path(number uint64) string { return filepath.Join(s.dir, name(number)+spillSuffix) }

// rowsOf is how many rows a file says that it has; 0 if it cannot be read.
func (s *spill) rowsOf(number uint64) int {
	f, err := os.Open(s.path(number))
	if err != nil {
		return 0
	}
	defer f.Close()
	head := make([]byte, spillHead)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:len(spillMark)]) != spillMark {
		return 0
	}
	return int(min(binary.BigEndian.Uint32(head[len(spillMark):]), maxSpilled))
}

// put writes what is left of a batch. lost is how many rows of the oldest batches had
// to go for it.
func (s *spill) put(b *batch) (lost int, err error) {
	octets := appendSpill(nil, b.left(), b.rest())
	size := int64(len(octets))
	if size > s.max || len(octets) > maxSpilled {
		return 0, fmt.Errorf("spilling: a batch of %d octets is larger than the folder may become", size)
	}
	for s.total+size > s.max {
		lost += s.remove()
	}
	path := s.path(s.next)
	if err := writeWhole(path, octets); err != nil {
		return lost, fmt.Errorf("spilling: %w", err)
	}
	s.files = append(s.files, spilled{s.next, size, b.left()})
	s.total += size
	s.next++
	return lost, nil
}

// writeWhole writes a file that is there whole or not at all, after a crash too.
func writeWhole(path string, octets []byte) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(octets)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// oldest reads the oldest batch. There is one.
func (s *spill) oldest() (*batch, error) {
	path := s.path(s.files[0].number)
	if s.files[0].size > maxSpilled {
		return nil, fmt.Errorf("reading %s: %w", path, errDamaged)
	}
	octets, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what was spilled: %w", err)
	}
	b, err := parseSpill(octets)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return b, nil
}

// remove removes the oldest batch and returns how many rows it has.
func (s *spill) remove() (rows int) {
	first := s.files[0]
	s.files = s.files[1:]
	s.total -= first.size
	_ = os.Remove(s.path(first.number)) // if it stays it is sent again, and ClickHouse knows it
	return first.rows
}

func (s *spill) close() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock, s.files = nil, nil
	return err
}

// appendSpill appends a spill file.
func appendSpill(dst []byte, rows int, lines []byte) []byte {
	dst = append(dst, spillMark...)
	numbers := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(rows)), uint32(len(lines)))
	sum := spillSum(numbers, lines)
	return append(append(append(dst, numbers...), sum...), lines...)
}

func spillSum(numbers, lines []byte) []byte {
	h := sha256.New()
	h.Write(numbers)
	h.Write(lines)
	return h.Sum(nil)
}

// parseSpill reads a spill file, which the batch keeps.
func parseSpill(octets []byte) (*batch, error) {
	if len(octets) < spillHead || string(octets[:len(spillMark)]) != spillMark {
		return nil, fmt.Errorf("it is no spill file of this version: %w", errDamaged)
	}
	numbers, lines := octets[len(spillMark):][:8], octets[spillHead:]
	rows, size := binary.BigEndian.Uint32(numbers), binary.BigEndian.Uint32(numbers[4:])
	if uint64(size) != uint64(len(lines)) || !bytes.Equal(spillSum(numbers, lines), octets[spillHead-sha256.Size:spillHead]) {
		return nil, errDamaged
	}
	b := &batch{octets: lines}
	for i, c := range lines {
		if c == '\n' {
			b.ends = append(b.ends, i+1)
		}
	}
	if uint64(len(b.ends)) != uint64(rows) || len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return nil, errDamaged
	}
	return b, nil
}
