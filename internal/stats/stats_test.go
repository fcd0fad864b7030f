package stats

import (
	"sync"
	"testing"

	"github.com/waymark-dns/waymark/internal/serve"
)

func TestPublish(t *testing.T) {
	var w Worker
	var b Batch
	b[Queries], b[BytesOut], b[Rcode(3)], b[Counters-1] = 2, 100, 1, 7
	w.Publish(&b)
	if b != (Batch{}) {
		t.Errorf("the batch is not cleared: %v", b)
	}
	w.Publish(&b)
	b[Queries] = 3
	w.Publish(&b)
	want := map[Counter]uint64{Queries: 5, BytesOut: 100, Rcode0 + 3: 1, Counters - 1: 7}
	for c := range Counters {
		if got := w.Load(c); got != want[c] {
			t.Errorf("counter %d is %d, want %d", c, got, want[c])
		}
	}
}

// Many publish into one Worker; nothing is lost.
func TestPublishTogether(t *testing.T) {
	var w Worker
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var b Batch
			for range 1000 {
				b[Queries]++
				b[BytesIn] += 2
				w.Publish(&b)
			}
		})
	}
	wg.Wait()
	if w.Load(Queries) != 8000 || w.Load(BytesIn) != 16000 {
		t.Errorf("%d queries, %d octets", w.Load(Queries), w.Load(BytesIn))
	}
}

// Every code and every source has a counter of its own; codes that are not
// assigned share the last.
func TestCounters(t *testing.T) {
	for code, want := range map[uint16]Counter{0: 0, 5: 5, 16: 16, 22: 22, 23: 23, 24: 23, 4095: 23} {
		if got := Rcode(code); got != want {
			t.Errorf("code %d is counter %d, want %d", code, got, want)
		}
	}
	if Rcode(65535) >= Queries {
		t.Errorf("codes reach into counter %d", Queries)
	}
	if n := int(Counters - FromNone); n != serve.Sources {
		t.Errorf("%d counters for %d sources", n, serve.Sources)
	}
	for source, counter := range map[serve.Source]Counter{
		serve.SourceNone: FromNone, serve.SourceZone: FromZone, serve.SourceLocal: FromLocal,
		serve.SourceRefused: FromRefused, serve.SourceError: FromError,
	} {
		if FromNone+Counter(source) != counter {
			t.Errorf("source %v is counter %d", source, counter)
		}
	}
}
