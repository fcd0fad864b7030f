package app

import (
	"encoding/binary"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// soak makes TestSoak go on for that long instead of a fixed number of rounds.
var soak = flag.Duration("soak", 0, "how long TestSoak sends mixed traffic; 0 is a few rounds")

// soakRounds is how many rounds TestSoak sends without -soak.
const soakRounds = 40

// TestSoak sends garbage, cut and mutated queries, responses, and messages as
// large as a datagram can be, over UDP and TCP, with good queries between them
// that must all be answered. In the end there are no more goroutines and hardly
// more memory than after the first rounds.
func TestSoak(t *testing.T) {
	r := behaviourServer(t)
	end := time.Now().Add(*soak)
	var goroutines int
	var heap uint64
	random := rand.New(rand.NewPCG(3, 4))
	round := 0
	for ; round < soakRounds || time.Now().Before(end); round++ {
		var wg sync.WaitGroup
		for range 2 {
			seed := random.Uint64()
			wg.Go(func() { soakUDP(t, r, rand.New(rand.NewPCG(seed, 1))) })
			wg.Go(func() { soakTCP(t, r, rand.New(rand.NewPCG(seed, 2))) })
		}
		wg.Wait()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
		if round == soakRounds/2 {
			goroutines, heap = settled()
		}
	}
	nowGoroutines, nowHeap := settled()
	if nowGoroutines > goroutines+4 || nowHeap > heap+4<<20 {
		t.Errorf("goroutines %d, then %d; heap %d, then %d octets", goroutines, nowGoroutines, heap, nowHeap)
	}
	t.Logf("%d rounds; goroutines %d, then %d; heap %d, then %d octets", round, goroutines, nowGoroutines, heap, nowHeap)
}

// settled is the goroutines and the live heap.
func settled() (int, uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// soakMessage is a message that is mostly no good query.
func soakMessage(random *rand.Rand) []byte {
	q := new(dns.Msg)
	names := []string{"www", "many", "x.big", "a.dn", "a.self", "q.r.w", "below.sub", "l1", strings.Repeat("y.", 100) + "w"}
	q.SetQuestion(names[random.IntN(len(names))]+".example.org.", uint16(random.IntN(300)))
	if random.IntN(2) == 0 {
		q.SetEdns0(uint16(random.IntN(65536)), random.IntN(2) == 0)
	}
	msg, err := q.Pack()
	if err != nil {
		panic(err)
	}
	switch random.IntN(6) {
	case 0: // garbage
		msg = make([]byte, random.IntN(600))
		fill(msg, random)
	case 1: // cut
		msg = msg[:random.IntN(len(msg))]
	case 2: // mutated
		for range 1 + random.IntN(8) {
			msg[random.IntN(len(msg))] = byte(random.IntN(256))
		}
	case 3: // larger than any network takes in one piece
		large := make([]byte, 1500+random.IntN(60000))
		fill(large[copy(large, msg):], random)
		msg = large
	case 4: // a response
		msg[2] |= 0x80
	}
	return msg
}

func fill(b []byte, random *rand.Rand) {
	for i := range b {
		b[i] = byte(random.IntN(256))
	}
}

// soakUDP sends 50 messages, and a good query that must be answered.
func soakUDP(t *testing.T, r *running, random *rand.Rand) {
	conn, err := net.Dial("udp", r.udp)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for range 50 {
		_, _ = conn.Write(soakMessage(random)) // too long for a datagram, perhaps
	}
	q := new(dns.Msg)
	q.SetQuestion("ns.example.org.", dns.TypeA)
	c := &dns.Client{Timeout: patience}
	if m, _, err := c.Exchange(q, r.udp); err != nil || len(m.Answer) != 1 {
		t.Errorf("a good query over UDP: %v, %v", m, err)
	}
}

// soakTCP sends messages with right and wrong lengths on one connection, and a
// good query on another, which must be answered.
func soakTCP(t *testing.T, r *running, random *rand.Rand) {
	conn, err := net.Dial("tcp", r.tcp)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	for range 20 {
		msg := soakMessage(random)
		size := len(msg)
		if random.IntN(8) == 0 {
			size = random.IntN(65536)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(size)), msg...)); err != nil {
			break // the server has had enough
		}
	}
	if half, ok := conn.(*net.TCPConn); ok && random.IntN(2) == 0 {
		_ = half.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	q := new(dns.Msg)
	q.SetQuestion("many.example.org.", dns.TypeTXT)
	c := &dns.Client{Net: "tcp", Timeout: patience}
	if m, _, err := c.Exchange(q, r.tcp); err != nil || len(m.Answer) != 120 {
		t.Errorf("a good query over TCP: %v", err)
	}
}
