package upstream

import "testing"

// A server that is drained gets nothing while another is there, also where it is the
// first in order; it is asked where the other fails.
func TestDrain(t *testing.T) {
	first, second := newFake(t, answer), newFake(t, answer)
	r := newRig(t, func(c *Config) { c.Select, c.Servers[0].Name = Order, "first" }, first, second)
	name := r.status(0).Name
	if !r.Drain(name, true) || r.Drain("nobody", true) {
		t.Fatal("the wrong server was found")
	}
	for range 3 {
		r.good("www.example.", 1)
	}
	if s := r.status(0); !s.Drained || s.Queries != 0 {
		t.Errorf("%+v", s)
	}
	r.Drain(name, false)
	r.good("www.example.", 0)
}

// The only server is asked, drained or not.
func TestDrainAlone(t *testing.T) {
	f := newFake(t, answer)
	r := newRig(t, nil, f)
	r.Drain(r.status(0).Name, true)
	r.good("www.example.", 0)
}
