package limit

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func TestKnown(t *testing.T) {
	k := newKnown(1000, testKey)
	a := netip.MustParseAddr("2001:db8::1")
	k.Add(a, time.Hour)
	for _, c := range []struct {
		name, addr string
		now        time.Duration
		want       bool
	}{
		{"at once", "2001:db8::1", time.Hour, true},
		{"a worker behind", "2001:db8::1", time.Hour - time.Minute, true},
		{"ten minutes", "2001:db8::1", time.Hour + 10*time.Minute, true},
		{"more", "2001:db8::1", time.Hour + 10*time.Minute + time.Second, false},
		{"of the same network", "2001:db8:0:ff::2%eth0", time.Hour, true},
		{"of another", "2001:db8:0:100::1", time.Hour, false},
		{"another", "192.0.2.1", time.Hour, false},
	} {
		if got := k.Has(netip.MustParseAddr(c.addr), c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	k.Add(a, time.Hour+9*time.Minute)
	if !k.Has(a, time.Hour+19*time.Minute) {
		t.Error("the second time is not noted")
	}
	k.Add(a, 2*time.Hour) // long forgotten
	if !k.Has(a, 2*time.Hour) {
		t.Error("a client that was forgotten is not noted again")
	}
	k.Add(netip.MustParseAddr("192.0.2.1"), 2*time.Hour)
	if !k.Has(netip.MustParseAddr("::ffff:192.0.2.1"), 2*time.Hour) || k.Has(netip.MustParseAddr("192.0.2.2"), 2*time.Hour) {
		t.Error("IPv4 clients are single addresses, mapped or not")
	}
	var none *Known
	if none.Add(a, 0); none.Has(a, 0) {
		t.Error("a nil Known knows a client")
	}
}

// One set: what goes first when there is no room.
func TestKnownReplaces(t *testing.T) {
	k := newKnown(1, testKey)
	minute := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	k.Add(client(1), minute(20)) // the oldest, but seen again
	k.Add(client(1), minute(21))
	k.Add(client(2), minute(22))
	k.Add(client(3), minute(23))
	k.Add(client(4), minute(24))
	has := func(name string, now time.Duration, want ...int) {
		t.Helper()
		var got []int
		for i := 1; i < 9; i++ {
			if k.Has(client(i), now) {
				got = append(got, i)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %v, want %v", name, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
	}
	has("no more than there are places", minute(24), 1, 2, 3, 4)
	k.Add(client(5), minute(25))
	has("the oldest seen once goes", minute(25), 1, 3, 4, 5)
	k.Add(client(6), minute(32)) // client 1 was last seen 11 minutes ago
	has("what is out of time goes", minute(32), 3, 4, 5, 6)
	for i := 3; i <= 6; i++ {
		k.Add(client(i), minute(32)+time.Duration(i)*10*time.Second)
	}
	k.Add(client(7), minute(40))
	has("of those seen again the oldest goes", minute(40), 4, 5, 6, 7)
	k.Add(client(8), minute(40))
	has("then the one seen once", minute(40), 4, 5, 6, 8)
}

// Clients that were known before a flood of forged addresses stay known.
func TestFloodKeepsKnown(t *testing.T) {
	k := newKnown(4096, testKey)
	const clients = 1000
	for _, now := range []time.Duration{time.Hour, time.Hour + time.Minute} {
		for i := range clients {
			k.Add(client(i), now)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300_000 {
		k.Add(client(1<<20+random.IntN(1<<27)), time.Hour+2*time.Minute)
	}
	kept := 0
	for i := range clients {
		if k.Has(client(i), time.Hour+2*time.Minute) {
			kept++
		}
	}
	if kept < clients*98/100 { // those with three more in their set of four do not fit
		t.Errorf("%d of %d clients are still known", kept, clients)
	}
}

func TestKnownAtOnce(t *testing.T) {
	k := newKnown(1<<12, testKey)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 2000 {
				now := time.Hour + time.Duration(i)*time.Second/10
				k.Add(client(i%50), now)
				if !k.Has(client(i%50), now) {
					t.Errorf("worker %d: client %d is not known", w, i%50)
				}
			}
		})
	}
	all.Wait()
}
