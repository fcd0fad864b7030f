package upstream

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/waymark-dns/waymark/internal/wire"
)

// A socket that has become useless is replaced by the query that finds it so.
func TestAddressTrouble(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Sockets = 1 }, f)
	r.good("www.example.", 0)
	first := f.next(t)
	breakSocket(t, r.servers[0].udp.places[0].Load())
	if w := r.good("www.example.", 0); w.Tries != 1 {
		t.Errorf("%d tries, want 1", w.Tries)
	}
	if f.next(t).from == first.from {
		t.Error("from the same port")
	}
	if s := r.status(0); s.Sockets != 1 {
		t.Errorf("%+v", s)
	}
}

// What waits on a socket that breaks goes on elsewhere.
func TestAddressTroubleWhileWaiting(t *testing.T) {
	f, other := newFake(t, silent), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select, c.Sockets = Order, 1 }, f, other)
	w := newWaiter("www.example.")
	r.Start(&w.Exchange)
	f.next(t)
	breakSocket(t, r.servers[0].udp.places[0].Load())
	second := newWaiter("other.example.")
	r.Start(&second.Exchange) // finds out
	f.next(t)
	r.pass(10 * time.Millisecond)
	w.wait(t)
	w.answered(t, wire.NoError, 1)
	r.pass(140 * time.Millisecond)
	second.wait(t)
	second.answered(t, wire.NoError, 1)
}

// breakSocket makes the next use of a socket fail.
func breakSocket(t testing.TB, k *socket) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := unix.Shutdown(k.end.sock.FD(), unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
}
