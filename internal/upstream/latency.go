package upstream

import (
	"sync/atomic"
	"time"
)

// LatencyBounds is where the classes of a Latency end, in milliseconds, that number
// included. One more class has the rest.
var LatencyBounds = [...]uint64{1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}

// Latency is how long the answers of a server took.
type Latency struct {
	Classes [len(LatencyBounds) + 1]uint64 // answers in each class
	Sum     time.Duration                  // of all
}

// latency counts answers by their class.
type latency struct {
	classes [len(LatencyBounds) + 1]atomic.Uint64
	sum     atomic.Uint64 // nanoseconds
}

func (l *latency) add(d time.Duration) {
	i := 0
	for i < len(LatencyBounds) && d > time.Duration(LatencyBounds[i])*time.Millisecond {
		i++
	}
	l.classes[i].Add(1)
	l.sum.Add(uint64(d))
}

func (l *latency) load() (sum Latency) {
	for i := range l.classes {
		sum.Classes[i] = l.classes[i].Load()
	}
	sum.Sum = time.Duration(l.sum.Load())
	return sum
}
