package history

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/waymark-dns/waymark/internal/durable"
)

// Pending is a change that waits for its confirmation.
type Pending struct {
	ID     int       `json:"id"`     // of its version
	Former int       `json:"former"` // the version that comes back
	Until  time.Time `json:"until"`  // when it is taken back
	Who    string    `json:"who,omitempty"`
	// Trouble is why it could not be taken back yet.
	Trouble string `json:"trouble,omitempty"`
}

// marker is a change on the disk, from before the file is touched until the change is
// to stay. It stands beside the file, and has all that is needed to go back: the folder
// of versions may be named in the very text that is taken back.
type marker struct {
	Pending
	Now    string `json:"now"` // sums of texts: what stood in the file, what is to stand there, what comes back
	New    string `json:"new"`
	Old    string `json:"old"`
	Dir    string `json:"dir"`
	Keep   int    `json:"keep"`
	Socket string `json:"socket,omitempty"`

	former   []byte // what comes back
	restored bool   // it has come back, and the server has yet to take it
}

// markerPath is the marker of a file.
func markerPath(path string) string { return path + ".unconfirmed" }

func (mk *marker) seal() []byte { return seal(markerKind, mk, mk.former) }

// readMarker reads the marker of a file; nil is none.
func readMarker(path string) (*marker, error) {
	data, err := os.ReadFile(markerPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a change that waits: %w", err)
	}
	mk, err := parseMarker(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", markerPath(path), err)
	}
	return mk, nil
}

func parseMarker(data []byte) (*marker, error) {
	mk := &marker{}
	text, err := unseal(markerKind, data, mk)
	if err != nil {
		return nil, err
	}
	if mk.Old != sum(text) || mk.ID <= 0 {
		return nil, errDamaged
	}
	mk.former = text
	return mk, nil
}

// Recover takes back what a server that has stopped left unconfirmed in the
// configuration file at path. It is to be called before the file is read; a file in
// which nothing waits is left alone, and so is one whose server still runs. done says
// what was done, and is empty where nothing was. With an error the file may be either
// text, whole, and the next call tries again. An empty path is no file.
func Recover(path string, wall func() time.Time) (done string, err error) {
	if path == "" {
		return "", nil
	}
	return recoverWith(path, wall, realDisk())
}

func recoverWith(path string, wall func() time.Time, d disk) (done string, err error) {
	mk, err := readMarker(path)
	if mk == nil || err != nil || running(mk.Socket) {
		return "", err
	}
	k := keeper{path: path, disk: d, wall: wall, store: store{dir: mk.Dir, keep: mk.Keep, disk: d}}
	changed, err := k.restore(mk)
	if err != nil {
		return "", fmt.Errorf("taking back version %d of the configuration, which nobody has confirmed: %w", mk.ID, err)
	}
	k.handOver()
	if err := d.remove(markerPath(path)); err != nil {
		return "", fmt.Errorf("taking back version %d of the configuration: %w", mk.ID, err)
	}
	_ = durable.Clean(path) // what is left does no harm
	if !changed {
		return "", nil
	}
	return fmt.Sprintf("version %d of the configuration, which nobody has confirmed, was taken back: %s is version %d again", mk.ID, path, mk.Former), nil
}

// handOver gives the newest version to who the folder belongs to: the server may run
// as someone else than who calls Recover.
func (k *keeper) handOver() {
	if ids, err := k.store.ids(); err == nil && len(ids) > 0 {
		_ = durable.OwnAs(k.store.path(ids[0]), k.store.dir) // else the version is told as one that cannot be read
	}
}

// running tells whether a server answers at the socket.
func running(socket string) bool {
	if socket == "" {
		return false
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
