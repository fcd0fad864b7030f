package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// never is a deadline that does not come.
func never(time.Duration) time.Time { return time.Time{} }

// gone is a deadline that has come.
func gone(time.Duration) time.Time { return time.Unix(1, 0) }

func echo(_ context.Context, r Request) Response {
	if r.Command == "fail" {
		return Response{Text: "so far", Error: "it failed"}
	}
	return Response{Text: "did " + r.Command}
}

// listen is a server at path, closed at the end of the test.
func listen(t *testing.T, path string, h Handler, deadline func(time.Duration) time.Time) *Server {
	t.Helper()
	s, err := Listen(path, h, deadline, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

func socket(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }

func TestCall(t *testing.T) {
	path := socket(t)
	listen(t, path, echo, never)
	for _, c := range []struct{ command, text, err string }{
		{"reload", "did reload", ""},
		{"", "did ", ""},
		{"two\nlines \x00 \"quoted\"", "did two\nlines \x00 \"quoted\"", ""},
		{"fail", "so far", "it failed"},
	} {
		text, err := Call(path, Request{Command: c.command})
		if text != c.text || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q: %q, %v; want %q, %q", c.command, text, err, c.text, c.err)
		}
	}
}

func TestCallNobody(t *testing.T) {
	if _, err := Call(socket(t), Request{Command: "reload"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a server: %v", err)
	}
}

// Many at once, each its own answer.
func TestCallTogether(t *testing.T) {
	path := socket(t)
	listen(t, path, echo, never)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			command := strings.Repeat("x", i)
			if text, err := Call(path, Request{Command: command}); err != nil || text != "did "+command {
				t.Errorf("%q: %q, %v", command, text, err)
			}
		})
	}
	wg.Wait()
}

func TestPermissions(t *testing.T) {
	path := socket(t)
	listen(t, path, echo, never)
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("the socket is %v", info.Mode())
	}
}

// A socket that a killed server left is replaced.
func TestStaleSocket(t *testing.T) {
	path := socket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no stale socket: %v", err)
	}
	listen(t, path, echo, never)
	if text, err := Call(path, Request{Command: "reload"}); err != nil || text != "did reload" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestListenRefused(t *testing.T) {
	dir := t.TempDir()
	served := filepath.Join(dir, "served")
	listen(t, served, echo, never)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{served, file, link, dir, filepath.Join(dir, "missing", "s")} {
		if s, err := Listen(path, echo, never, slog.New(slog.DiscardHandler)); err == nil {
			_ = s.Close()
			t.Errorf("%s is opened", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v does not say which", path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q now, %v", text, err)
	}
	if text, err := Call(served, Request{Command: "reload"}); err != nil || text != "did reload" {
		t.Errorf("the server that was there: %q, %v", text, err)
	}
}

// raw sends octets as they are and returns the answer.
func raw(t *testing.T, path, request string) (resp Response) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request) // a server that has heard enough hangs up
	_ = conn.(*net.UnixConn).CloseWrite()
	_ = json.NewDecoder(conn).Decode(&resp)
	return resp
}

func TestBadRequests(t *testing.T) {
	path := socket(t)
	listen(t, path, func(context.Context, Request) Response {
		t.Error("a bad request is handled")
		return Response{}
	}, never)
	for name, request := range map[string]string{
		"nothing":          "",
		"no end of line":   `{"command":"reload"}`,
		"an empty line":    "\n",
		"not JSON":         "reload\n",
		"a list":           "[]\n",
		"another type":     `{"command":1}` + "\n",
		"two on one line":  `{"command":"a"}{"command":"b"}` + "\n",
		"a line cut short": `{"command":` + "\n",
		"a line too long":  `{"command":"` + strings.Repeat("x", maxLine) + `"}` + "\n",
	} {
		if resp := raw(t, path, request); !strings.HasPrefix(resp.Error, "reading request: ") && name != "a line too long" {
			t.Errorf("%s is answered with %+v", name, resp)
		}
	}
}

// Whoever says nothing is hung up on in time.
func TestPatience(t *testing.T) {
	path := socket(t)
	listen(t, path, echo, gone)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("waiting for the server to hang up: %v", err)
	}
}

// Close ends idle connections, waits for requests that run, tells them, and
// takes the socket away.
func TestClose(t *testing.T) {
	path := socket(t)
	running := make(chan struct{})
	s := listen(t, path, func(ctx context.Context, r Request) Response {
		close(running)
		<-ctx.Done()
		return Response{Text: "finished"}
	}, never)
	idle, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answer := make(chan string)
	go func() {
		text, err := Call(path, Request{Command: "wait"})
		if err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	<-running
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if text := <-answer; text != "finished" {
		t.Errorf("the request that ran is answered with %q", text)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := Call(path, Request{Command: "reload"}); err == nil {
		t.Error("a closed server answers")
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add(`{"command":"reload"}` + "\n")
	f.Add("{}\n{}\n")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, in string) {
		var req Request
		if readLine(strings.NewReader(in), &req) != nil {
			return
		}
		line, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		var again Request
		if err := readLine(strings.NewReader(string(line)+"\n"), &again); err != nil || again.Command != req.Command || !slices.Equal(again.Args, req.Args) {
			t.Fatalf("%q is read as %+v, and that as %+v, %v", in, req, again, err)
		}
	})
}
