package search

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/waymark-dns/waymark/internal/qlog"
)

// merger gives the rows of many files in one order. Files hardly overlap in time,
// so few are in its hands at once; those that come next are read meanwhile.
type merger struct {
	*run
	ctx     context.Context
	taken   atomic.Int64  // parts that a reader has taken
	tickets chan struct{} // one for each part that is read and not yet active
	active  []head
	started int // parts that have been active
	next    Cursor
}

// head is the place in a block that has been reached.
type head struct {
	block *block
	at    int
}

// give hands the rows of all parts to each, in order, and tells where to go on.
func (r *run) give(each func(*qlog.Row) bool) (Cursor, error) {
	ctx, cancel := context.WithCancel(r.ctx)
	m := merger{run: r, ctx: ctx, tickets: make(chan struct{}, workers+1)}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(m.readLoop)
	}
	err := m.give(each)
	cancel()
	wg.Wait()
	return m.next, err
}

// readLoop reads the blocks of parts until there is none left or ctx ends.
func (m *merger) readLoop() {
	for {
		select {
		case m.tickets <- struct{}{}:
		case <-m.ctx.Done():
			return
		}
		i := int(m.taken.Add(1)) - 1
		if i >= len(m.parts) || m.ctx.Err() != nil {
			return
		}
		p := m.parts[i]
		if p.tail {
			continue
		}
		_ = m.inSegment(p, func(s *segment) (err error) {
			p.block, err = s.readBlock(m.f)
			return err
		})
		close(p.done)
	}
}

// give hands the rows to each, in order.
func (m *merger) give(each func(*qlog.Row) bool) error {
	var row qlog.Row
	last := m.f.After
	given, over := 0, m.f.After.Rows
	for {
		best, err := m.best()
		if err != nil || best < 0 {
			return err
		}
		h := m.active[best]
		at := h.block.time(m.place(h))
		if over > 0 && at == m.f.After.Time {
			over--
			m.advance(best)
			continue
		}
		if m.f.Limit > 0 && given == m.f.Limit {
			m.next = last
			return nil
		}
		h.block.row(m.place(h), &row)
		m.advance(best)
		given++
		last = last.behind(at)
		if !each(&row) {
			m.next = last
			return nil
		}
	}
}

// behind is the cursor after one more row.
func (c Cursor) behind(at int64) Cursor {
	if c.Rows > 0 && c.Time == at {
		return Cursor{at, c.Rows + 1}
	}
	return Cursor{at, 1}
}

// best is the active block whose row is next, -1 if no row is left. Blocks that
// might have an earlier one become active first.
func (m *merger) best() (int, error) {
	for {
		best := -1
		for i := range m.active {
			if best < 0 || m.before(m.active[i], m.active[best]) {
				best = i
			}
		}
		if m.started == len(m.parts) || best >= 0 && !m.reaches(m.parts[m.started], m.active[best]) {
			return best, m.ctx.Err()
		}
		if err := m.activate(m.parts[m.started]); err != nil {
			return -1, err
		}
	}
}

// activate waits for the block of the next part.
func (m *merger) activate(p *part) error {
	select {
	case <-p.done:
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
	select {
	case <-m.tickets:
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
	m.started++
	if p.block != nil && len(p.block.order) > 0 {
		m.active = append(m.active, head{p.block, 0})
		p.block = nil
	}
	return nil
}

// place is where the next row of a block stands in its order.
func (m *merger) place(h head) int {
	if m.f.Oldest {
		return h.at
	}
	return len(h.block.order) - 1 - h.at
}

// before tells whether the next row of a comes before that of b.
func (m *merger) before(a, b head) bool {
	x, y := a.block.time(m.place(a)), b.block.time(m.place(b))
	if m.f.Oldest {
		return x < y
	}
	return x > y
}

// reaches tells whether a part may have a row that comes before the next of h, or
// at the same time.
func (m *merger) reaches(p *part, h head) bool {
	at := h.block.time(m.place(h))
	if m.f.Oldest {
		return p.first <= at
	}
	return p.last >= at
}

func (m *merger) advance(i int) {
	m.active[i].at++
	if m.active[i].at == len(m.active[i].block.order) {
		m.active = append(m.active[:i], m.active[i+1:]...)
	}
}
