package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/durable"
)

// Version is a text that the configuration had, or was to have.
type Version struct {
	ID      int       `json:"id"` // from 1; a later one has a greater number
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"` // empty where it was found in the file
	Comment string    `json:"comment,omitempty"`
	ETag    string    `json:"etag,omitempty"`    // SHA-256 of the text, in hexadecimal
	Current bool      `json:"current,omitempty"` // it is what the file has now
	Trouble string    `json:"trouble,omitempty"` // why it cannot be read; then only ID is known
}

// The comments of versions that nobody has applied.
const (
	firstFound = "as it was before the first change"
	laterFound = "written into the file by hand"
)

// store is the folder of versions, a file each. The manager that has it sees to it
// that one at a time changes it.
type store struct {
	dir  string
	keep int
	disk disk
}

// ending is that of the names of versions.
const ending = ".version"

func (s store) path(id int) string { return filepath.Join(s.dir, fmt.Sprintf("%08d%s", id, ending)) }

// ids lists the numbers of all versions, the newest first.
func (s store) ids() ([]int, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}
	var all []int
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ending)
		if id, err := strconv.Atoi(digits); ok && err == nil && id > 0 && s.path(id) == filepath.Join(s.dir, e.Name()) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

// list is all versions, the newest first.
func (s store) list() ([]Version, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	all := make([]Version, 0, len(ids))
	for _, id := range ids {
		v, _, err := s.read(id)
		if errors.Is(err, ErrNoVersion) {
			continue // it has just gone
		}
		if err != nil {
			v = Version{ID: id, Trouble: err.Error()}
		}
		all = append(all, v)
	}
	return all, nil
}

// read is one version and its text, which is sound.
func (s store) read(id int) (Version, []byte, error) {
	data, err := os.ReadFile(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Version{}, nil, fmt.Errorf("reading version %d: %w", id, ErrNoVersion)
	}
	if err != nil {
		return Version{}, nil, fmt.Errorf("reading version %d: %w", id, err)
	}
	var v Version
	text, err := unseal(versionKind, data, &v)
	if err == nil && v.ETag != sum(text) {
		err = errDamaged
	}
	if err != nil {
		return Version{}, nil, fmt.Errorf("reading version %d: %w", id, err)
	}
	v.ID, v.Current, v.Trouble = id, false, ""
	return v, text, nil
}

// find is the newest version with that sum.
func (s store) find(etag string) (Version, error) {
	all, err := s.list()
	if err != nil {
		return Version{}, err
	}
	for _, v := range all {
		if v.ETag == etag {
			return v, nil
		}
	}
	return Version{}, ErrNoVersion
}

// found keeps a text that stands in the file and is no version.
func (s store) found(text []byte, at time.Time) error {
	_, err := s.find(sum(text))
	if !errors.Is(err, ErrNoVersion) {
		return err
	}
	ids, err := s.ids()
	if err != nil {
		return err
	}
	v := Version{Time: at, Comment: firstFound}
	if len(ids) > 0 {
		v.Comment = laterFound
	}
	_, err = s.add(v, text)
	return err
}

// add keeps a text as the newest version, with a number and a sum. The oldest go
// beyond what is kept; that they cannot is no error.
func (s store) add(v Version, text []byte) (Version, error) {
	ids, err := s.ids()
	if err != nil {
		return Version{}, err
	}
	if err := s.make(); err != nil {
		return Version{}, fmt.Errorf("keeping a version: %w", err)
	}
	v.ID, v.ETag = 1, sum(text)
	if len(ids) > 0 {
		v.ID = ids[0] + 1
	}
	if err := s.disk.write(s.path(v.ID), seal(versionKind, v, text), 0o600); err != nil {
		return Version{}, fmt.Errorf("keeping a version: %w", err)
	}
	for _, id := range ids[min(max(s.keep-1, 1), len(ids)):] {
		_ = s.remove(id) // the next version tries again
	}
	return v, nil
}

// make makes the folder, where it is not there.
func (s store) make() error {
	err := os.Mkdir(s.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(s.dir))
}

func (s store) remove(id int) error { return s.disk.remove(s.path(id)) }

// The kinds of files here, and the format that is written. A file begins with a line
// that says both, and a line of JSON; what follows is the text as it was.
const (
	versionKind = "version of a configuration"
	markerKind  = "configuration before a change that is not confirmed"
	format      = "1"
)

var (
	errDamaged = errors.New("the file is damaged")
	errFormat  = errors.New("the format of the file is not known to this version of the program")
)

// seal makes the file of a text.
func seal(kind string, meta any, text []byte) []byte {
	line, err := json.Marshal(meta)
	if err != nil {
		panic(err) // both kinds are plain structs
	}
	return bytes.Join([][]byte{[]byte("# waymark " + kind + ", format " + format), line, text}, []byte("\n"))
}

// unseal reads the file of a text. Whether the text is sound is for the caller to see.
func unseal(kind string, data []byte, meta any) ([]byte, error) {
	first, rest, ok := bytes.Cut(data, []byte("\n"))
	head, version, known := strings.Cut(string(first), ", format ")
	if !ok || !known || head != "# waymark "+kind {
		return nil, errDamaged
	}
	if version != format {
		return nil, errFormat
	}
	line, text, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || json.Unmarshal(line, meta) != nil {
		return nil, errDamaged
	}
	return text, nil
}

// number reads the number of a version.
func number(text string) (int, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("reading %q as the number of a version: %w", text, ErrNoVersion)
	}
	return id, nil
}
