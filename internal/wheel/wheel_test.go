package wheel

import (
	"math/rand/v2"
	"testing"
	"time"
)

// event is what the tests keep.
type event struct {
	due    time.Duration
	serial uint32
}

// Events come in the first step that is not before their time, however the wheel
// is turned.
func TestWheel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w Wheel[event]
	now := 77 * time.Hour // long after it was made
	waiting := map[uint32]time.Duration{}
	serial := uint32(0)
	for range 3000 {
		for range rng.IntN(60) {
			serial++
			due := now + time.Duration(rng.IntN(12_000)-1000)*time.Millisecond
			waiting[serial] = due
			w.Add(&event{due, serial}, due, uint16(rng.Uint32()))
		}
		last := now
		switch rng.IntN(100) {
		case 0:
			now += time.Duration(rng.IntN(20)) * time.Second
		default:
			now += time.Duration(rng.IntN(30)) * time.Millisecond
		}
		for i := range w.shards {
			s := &w.shards[i]
			for list := s.Take(now); list != nil; list = s.Take(now) {
				list.Each(func(e *event) {
					if e.due > now {
						w.Add(e, e.due, uint16(e.serial))
						return
					}
					if waiting[e.serial] != e.due {
						t.Fatalf("event %d came twice", e.serial)
					}
					delete(waiting, e.serial)
				})
				s.Release(list)
			}
		}
		if now/Step > last/Step {
			for n, due := range waiting {
				if (max(due, last+Step)+Step-1)/Step <= now/Step && due <= now-Step {
					t.Fatalf("event %d is due since %v", n, now-due)
				}
			}
		}
		if w.Empty() != (len(waiting) == 0) {
			t.Fatalf("empty: %v with %d waiting", w.Empty(), len(waiting))
		}
	}
}
