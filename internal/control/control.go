// Package control is the socket that the command line talks to a running server
// by: one request a connection, a line of JSON each way. Who may open the socket
// may do everything that it offers; its file belongs to the server's user alone.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxLine bounds a request and a response.
const maxLine = 1 << 20

// patience is how long a connection may take to say what it wants.
const patience = 5 * time.Second

// acceptPause is how long acceptLoop rests when the system gives no connection.
const acceptPause = 100 * time.Millisecond

// Request is what is asked for.
type Request struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// Response is what came of it. Error is empty where it was done.
type Response struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// Handler does what a request asks for. It may be called at once from many.
type Handler func(ctx context.Context, r Request) Response

// Server is a listening socket.
type Server struct {
	listener net.Listener
	handler  Handler
	deadline func(time.Duration) time.Time
	log      *slog.Logger
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup // of acceptLoop and of connections
}

// Listen opens the socket at path. A socket file that a killed server left is
// replaced; one that answers is an error. Requests wait until Serve.
func Listen(path string, h Handler, deadline func(time.Duration) time.Time, log *slog.Logger) (*Server, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("opening control socket %s: another server answers there", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("opening control socket %s: a file that is no socket stands there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("opening control socket: %w", err)
		}
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("opening control socket: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Server{listener: l, handler: h, deadline: deadline, log: log, ctx: ctx, stop: stop}, nil
}

// Serve starts to answer requests.
func (s *Server) Serve() { s.wg.Go(s.acceptLoop) }

// listenPrivate makes a socket that only its owner may open: from the start where
// the system takes the mode of a socket that is not bound yet, as Linux does.
func listenPrivate(path string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return raw.Control(private) }}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close stops listening, removes the socket file, and waits for the requests
// that run.
func (s *Server) Close() error {
	s.stop()
	err := s.listener.Close()
	s.wg.Wait()
	return err
}

func (s *Server) acceptLoop() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("control socket: accepting failed", "error", err)
			select { // no descriptors left, mostly: trying at once would only burn the processor
			case <-s.ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		s.wg.Go(func() { s.serve(conn) })
	}
}

func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(s.deadline(patience))
	// Close does not wait for who says nothing.
	stop := context.AfterFunc(s.ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var req Request
	var resp Response
	if err := readLine(conn, &req); err != nil {
		resp.Error = "reading request: " + err.Error()
	} else {
		_ = conn.SetDeadline(time.Time{}) // a reload may take as long as it takes
		resp = s.handler(s.ctx, req)
		resp.Text, resp.Error = shorten(resp.Text), shorten(resp.Error)
		_ = conn.SetDeadline(s.deadline(patience))
	}
	_ = json.NewEncoder(conn).Encode(resp) // who has gone does not read it
}

// shorten cuts text so that a response stays below maxLine, whatever JSON makes of
// it.
func shorten(text string) string {
	const most = maxLine / 16
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " … and more"
}

func readLine(r io.Reader, into any) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// Call sends one request to the server at path and returns what came of it. An
// error that the server tells is an error here.
func Call(path string, req Request) (string, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return "", fmt.Errorf("reaching the server: %w", err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return "", fmt.Errorf("sending %s: %w", req.Command, err)
	}
	var resp Response
	if err := readLine(conn, &resp); err != nil {
		return "", fmt.Errorf("reading the answer to %s: %w", req.Command, err)
	}
	if resp.Error != "" {
		return resp.Text, errors.New(resp.Error)
	}
	return resp.Text, nil
}
