package qlog

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a log and a ring that it reads, with a clock that goes when it is told to.
type site struct {
	*Log
	t    *testing.T
	ring *Ring
	f    *traffic
	*clock
	text *locked
}

// clock is the time of a site.
type clock struct{ at atomic.Int64 }

// epoch is when the clocks of tests begin.
var epoch = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func (c *clock) now() time.Duration { return time.Duration(c.at.Load()) }

func (c *clock) wall() time.Time { return epoch.Add(c.now()) }

// locked is what the program's log says.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func config(dir string) (Config, *locked, *clock) {
	c, text := &clock{}, &locked{}
	return Config{
		Dir: dir, Now: c.now, Wall: c.wall,
		Log: slog.New(slog.NewTextHandler(text, nil)),
		Names: Names{
			Rule:     func(uint16) string { return "waymark.yaml:17" },
			Upstream: func(n uint16) string { return []string{"", "udp://192.0.2.53:53"}[n] },
			Listener: func(n uint16) string { return []string{"udp://127.0.0.1:53", "tcp://127.0.0.1:53"}[n] },
		},
	}, text, c
}

// openSite opens a log; change changes its configuration before.
func openSite(t *testing.T, dir string, change func(*Config)) *site {
	t.Helper()
	c, text, clock := config(dir)
	if change != nil {
		change(&c)
	}
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Log: l, t: t, ring: NewRing(c.Now), f: newTraffic(t, 50, 1000), clock: clock, text: text}
	l.Add(s.ring)
	return s
}

// ask makes n queries, and lets the log see them.
func (s *site) ask(n int) {
	r := s.f.request()
	for range n {
		s.f.next(r)
		r.At = s.now()
		s.ring.Observe(r)
		s.ring.Flush()
	}
}

// pass lets time pass, and the log do what is due then.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	gone, stop := context.WithCancel(context.Background())
	stop()
	nothing := &deletion{ctx: gone, done: make(chan error, 1)} // done when what was given before is
	s.requests <- func() {
		s.turn()
		s.at.Add(int64(d))
		s.turn()
		s.jobs <- job{delete: nothing}
	}
	<-nothing.done
}

// shut closes the log.
func (s *site) shut() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// read is every row in the files of a folder, and what files there are.
func read(t *testing.T, dir string) (rows []Row, files []File) {
	t.Helper()
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		from := ReadSegment
		if f.Tail {
			from = ReadTail
		}
		if err := from(f.Path, func(r *Row) bool { rows = append(rows, *r); return true }); err != nil {
			t.Fatal(err)
		}
	}
	return rows, files
}

// What is asked is in the tail a second later, in a segment when the log is closed.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	func() {
		s := openSite(t, dir, nil)
		s.ask(100)
		s.pass(1100 * time.Millisecond)
		rows, files := read(t, dir)
		if len(rows) != 100 || len(files) != 1 || !files[0].Tail {
			t.Fatalf("after a second: %d rows in %v", len(rows), files)
		}
		if got := rows[0].Time; got != epoch.UnixMicro() {
			t.Errorf("the first row is of %d, asked at %d", got, epoch.UnixMicro())
		}
		s.ask(50)
		s.shut()
		rows, files = read(t, dir)
		if len(rows) != 150 || len(files) != 1 || files[0].Tail {
			t.Fatalf("after the end: %d rows in %v", len(rows), files)
		}
		if st := s.Stats(); st.Rows != 150 || st.Lost != 0 || st.Files != 1 || st.Octets != files[0].Size {
			t.Errorf("%+v", st)
		}
	}()
}

// A quarter of an hour after its first row a tail becomes a segment, and another one
// begins with the next row. An idle log writes nothing.
func TestLogAge(t *testing.T) {
	dir := t.TempDir()
	func() {
		s := openSite(t, dir, nil)
		for range 3 {
			s.ask(10)
			s.pass(16 * time.Minute)
		}
		s.pass(time.Hour)
		rows, files := read(t, dir)
		if len(rows) != 30 || len(files) != 3 {
			t.Errorf("%d rows in %d files", len(rows), len(files))
		}
		for _, f := range files {
			if f.Tail {
				t.Errorf("%s is left", f.Path)
			}
		}
		s.shut()
	}()
}

// Files go when they are older than is to be kept, and when they are too many, the
// oldest first.
func TestKeep(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"age":   func(c *Config) { c.Age = 50 * time.Minute },
		"bytes": func(c *Config) { c.Keep = 32 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			func() {
				s := openSite(t, dir, change)
				var first time.Time
				for i := range 20 {
					s.ask(100)
					s.pass(16 * time.Minute)
					if i == 16 {
						first = s.wall().Add(-16 * time.Minute)
					}
				}
				_, files := read(t, dir)
				octets := int64(0)
				for _, f := range files {
					octets += f.Size
				}
				if len(files) < 2 || len(files) > 8 {
					t.Errorf("%d files of 20 are kept", len(files))
				}
				if name == "bytes" && octets > 32<<10 {
					t.Errorf("%d octets are kept", octets)
				}
				if name == "age" && files[0].First.Before(first.Add(-time.Hour)) {
					t.Errorf("the oldest is of %v", files[0].First)
				}
				s.shut()
			}()
		})
	}
}

// full is a disk with room for so many octets; what is removed makes room.
type full struct {
	file
	dir  string
	most int64
}

func used(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

func (f *full) Write(b []byte) (int, error) {
	if room := f.most - used(f.dir); int64(len(b)) > room {
		n, _ := f.file.Write(b[:max(room, 0)])
		return n, &os.PathError{Op: "write", Path: f.dir, Err: syscall.ENOSPC}
	}
	return f.file.Write(b)
}

// On a full disk the oldest files go, the newest rows are kept, and it is said once.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	func() {
		s := openSite(t, dir, nil)
		s.keeper.create = func(path string) (file, error) {
			f, err := createFile(path)
			return &full{file: f, dir: dir, most: 40 << 10}, err
		}
		for range 30 {
			s.ask(100)
			s.pass(16 * time.Minute)
		}
		last := s.wall()
		s.shut()
		rows, files := read(t, dir)
		if len(files) < 4 || used(dir) > 40<<10 {
			t.Errorf("%d files, %d octets", len(files), used(dir))
		}
		if newest := rows[len(rows)-1].Time; newest < last.Add(-17*time.Minute).UnixMicro() {
			t.Errorf("the newest row is %v old", last.Sub(time.UnixMicro(newest)))
		}
		if n := strings.Count(s.text.String(), "disk is full"); n == 0 || n > 9 { // at most one in an hour
			t.Errorf("the warning is there %d times", n)
		}
		if s.Stats().Lost != 0 {
			t.Errorf("%d rows are lost", s.Stats().Lost)
		}
	}()
}

// A disk that takes nothing at all costs the log its rows, and nobody else anything.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	func() {
		s := openSite(t, dir, nil)
		var broken atomic.Bool
		broken.Store(true)
		s.keeper.create = func(path string) (file, error) {
			if broken.Load() {
				return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EIO}
			}
			return createFile(path)
		}
		s.ask(100)
		s.pass(16 * time.Minute)
		if st := s.Stats(); st.Lost != 100 {
			t.Errorf("%+v", st)
		}
		s.ask(10)
		s.pass(2 * time.Second)
		broken.Store(false)
		s.pass(2 * time.Second)
		s.shut()
		if rows, _ := read(t, dir); len(rows) != 10 {
			t.Errorf("%d rows; what waited in memory should be there", len(rows))
		}
	}()
}

// What another run has left becomes segments: tails, also damaged and empty ones.
func TestLogAdopts(t *testing.T) {
	dir := t.TempDir()
	tab := filled(t, 1000, 300, 1000, true, true)
	b, ends := tailOf(tab, 100)
	at := func(n int64) string { return filepath.Join(dir, fileName(1_700_000_000_000_000+n, tailExt)) }
	damaged := slices.Clone(b)
	damaged[ends[4]+20] ^= 1
	for path, b := range map[string][]byte{
		at(1): b, at(2): b[:len(b)-10], at(3): damaged, at(4): b[:5], at(5): tailHeader(),
		filepath.Join(dir, fileName(6, segmentExt)+partExt): b,
		filepath.Join(dir, "notes.txt"):                     []byte("not ours"),
		at(7):                                               append(tailHeader()[:8:8], 2, 0, 0, 0, 0, 0, 0, 0),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	func() {
		s := openSite(t, dir, nil)
		s.shut()
		entries, _ := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		want := []string{fileName(1_700_000_000_000_001, segmentExt), fileName(1_700_000_000_000_002, segmentExt), fileName(1_700_000_000_000_003, segmentExt), fileName(1_700_000_000_000_007, tailExt), lockFile, "notes.txt"}
		if !slices.Equal(names, want) {
			t.Fatalf("files %v, want %v", names, want)
		}
		for i, rows := range []int{1000, 900, 500} {
			n := 0
			if err := ReadSegment(filepath.Join(dir, want[i]), func(r *Row) bool { n++; return true }); err != nil || n != rows {
				t.Errorf("%s: %d rows, want %d: %v", want[i], n, rows, err)
			}
		}
		if text := s.text.String(); !strings.Contains(text, "damaged") || !strings.Contains(text, "another version") {
			t.Errorf("nothing is said of damage, or of another version: %s", text)
		}
	}()
}

// Rows are deleted from segments and from what is not one yet.
func TestDelete(t *testing.T) {
	dir := t.TempDir()
	func() {
		s := openSite(t, dir, nil)
		s.ask(500)
		s.pass(16 * time.Minute)
		s.ask(500)
		s.pass(time.Second)
		all, _ := read(t, dir)
		client := all[0].Client
		match := func(r *Row) bool { return r.Client == client }
		want := slices.DeleteFunc(slices.Clone(all), func(r Row) bool { return match(&r) })
		gone, err := s.Delete(context.Background(), match)
		if err != nil || gone != len(all)-len(want) || gone == 0 {
			t.Errorf("%d rows are gone of %d: %v", gone, len(all)-len(want), err)
		}
		if got, _ := read(t, dir); !slices.Equal(got, want) {
			t.Errorf("%d rows are left, want %d", len(got), len(want))
		}
		if gone, err = s.Delete(context.Background(), func(*Row) bool { return true }); err != nil || gone != len(want) {
			t.Errorf("%d rows are gone of %d: %v", gone, len(want), err)
		}
		if got, files := read(t, dir); len(got)+len(files) != 0 {
			t.Errorf("%d rows in %d files are left", len(got), len(files))
		}
		s.shut()
		if _, err := s.Delete(context.Background(), match); err == nil {
			t.Error("a closed log deletes")
		}
	}()
}

// What clients are called.
func TestPrivacy(t *testing.T) {
	dir := t.TempDir()
	keyed := privacy{level: Pseudonyms, key: bytes.Repeat([]byte{7}, 32)}
	for _, c := range []struct {
		p            privacy
		client, want string
		ecs          string
		wantECS      string
	}{
		{privacy{}, "192.0.2.77", "192.0.2.77", "\x00\x01\x20\x00\xc0\x00\x02\x4d", "192.0.2.77/32"},
		{privacy{level: Masked}, "192.0.2.77", "192.0.2.0", "\x00\x01\x20\x00\xc0\x00\x02\x4d", "192.0.2.0/24"},
		{privacy{level: Masked}, "2001:db8:1:2::3", "2001:db8:1::", "\x00\x02\x38\x00\x20\x01\x0d\xb8\x00\x01\x02", "2001:db8:1::/48"},
		{keyed, "192.0.2.77", "", "\x00\x01\x18\x00\xc0\x00\x02", ""},
		{privacy{}, "::1", "::1", "\x00\x01", ""},
		{privacy{}, "::1", "::1", "\x00\x01\x21\x00\xc0\x00\x02\x4d\x01", ""},
		{privacy{}, "::1", "::1", "\x00\x01\xff\x00", ""},
	} {
		got := string(c.p.appendClient(nil, c.p.mask(netip.MustParseAddr(c.client).As16())))
		if c.p.level == Pseudonyms && (len(got) != 18 || strings.Contains(got, "192")) || c.p.level != Pseudonyms && got != c.want {
			t.Errorf("%s is called %s, want %s", c.client, got, c.want)
		}
		if ecs := c.p.subnet([]byte(c.ecs)); ecs != c.wantECS {
			t.Errorf("subnet %x is %s, want %s", c.ecs, ecs, c.wantECS)
		}
	}
	first, err := openKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := openKey(dir); err != nil || !bytes.Equal(first, again) {
		t.Errorf("another key the second time: %v", err)
	}
	for _, text := range []string{"", "waymark-pseudonyms 2\n00\n", keyVersion + "\nxyz\n", keyVersion + "\n00ff\n"} {
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openKey(dir); err == nil || !strings.Contains(err.Error(), keyFile) {
			t.Errorf("%q is read as a key: %v", text, err)
		}
	}
	func() {
		logs := t.TempDir()
		s := openSite(t, logs, func(c *Config) { c.Privacy, c.Without = Pseudonyms, Without{ClientPorts: true, Answers: true} })
		s.ask(100)
		s.shut()
		rows, _ := read(t, logs)
		for _, r := range rows {
			if !strings.HasPrefix(r.Client, "c-") || r.ClientPort != 0 || r.Answers != "" {
				t.Fatalf("%+v", r)
			}
		}
		if len(rows) != 100 {
			t.Errorf("%d rows", len(rows))
		}
	}()
}

// taker is a sink.
type taker struct {
	rows   []Row
	closed bool
}

func (s *taker) Put(rows []Row) { s.rows = append(s.rows, rows...) }
func (s *taker) Close() error   { s.closed = true; return nil }

// Sinks and feeds get every row; a feed that is slow loses some, and knows how many.
func TestFeed(t *testing.T) {
	func() {
		sink := &taker{}
		s := openSite(t, t.TempDir(), func(c *Config) { c.Sinks = []Sink{sink} })
		quick, slow, left := s.Follow(1000), s.Follow(10), s.Follow(10)
		s.Leave(left)
		s.ask(100)
		s.pass(time.Second)
		if len(quick.C) != 100 || len(slow.C) != 10 || slow.Dropped() != 90 || len(left.C) != 0 {
			t.Errorf("%d rows, %d rows and %d dropped, %d rows", len(quick.C), len(slow.C), slow.Dropped(), len(left.C))
		}
		s.shut()
		if len(sink.rows) != 100 || !sink.closed {
			t.Errorf("%d rows, closed: %v", len(sink.rows), sink.closed)
		}
		for range quick.C {
		}
	}()
}

// Rows are in order, whatever order they came in.
func TestOrder(t *testing.T) {
	tab := filled(t, 5000, 100, 1000, true, true)
	want := rowsOf(tab)
	mixed := newTable()
	mixed.names, mixed.clients, mixed.answers, mixed.templates = tab.names, tab.clients, tab.answers, tab.templates
	for at := 0; at < len(tab.rows); at += 500 { // three rings, and late ones now and then
		for ring := range 3 {
			for i := ring; i < 500; i += 3 {
				if (at+i)%50 != 7 || at == 4500 {
					mixed.rows = append(mixed.rows, tab.rows[at+i])
				}
			}
		}
		mixed.sortFrom(len(mixed.rows) - 490)
	}
	for i := range tab.rows[:4500] {
		if i%50 == 7 {
			mixed.rows = append(mixed.rows, tab.rows[i])
		}
	}
	mixed.sort()
	if got := rowsOf(mixed); len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b Row) int { return int(a.Time - b.Time) }) {
		t.Errorf("%d rows of %d, or not in order", len(got), len(want))
	}
}

// Two logs do not share a folder; the second gets it when the first has ended.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	s := openSite(t, dir, nil)
	c, _, _ := config(dir)
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Fatalf("a second log of the folder: %v", err)
	}
	s.shut()
	openSite(t, dir, nil).shut()
}
