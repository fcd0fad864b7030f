package listen

import (
	"github.com/waymark-dns/waymark/internal/stats"
)

// parkedTCP is a request that waits; the connection waits for it.
type parkedTCP struct {
	parking
	c *tcpConn
}

func newParkedTCP() any {
	k := &parkedTCP{}
	k.end = k.finish
	return k
}

// finish leaves the sending to writeLoop: a client that does not read would hold up
// whoever woke us.
func (k *parkedTCP) finish(done bool) {
	if !done {
		var b stats.Batch
		dropped(&b, &k.req)
		k.leave(&b)
		return
	}
	c := k.c
	k.req.Fit(c.t.cfg.UDPSize)
	c.queueing.Lock()
	c.queue = append(c.queue, k)
	start := !c.writing
	c.writing = true
	c.queueing.Unlock()
	if start {
		c.parked.Add(1) // k is one of those already: nobody has waited in vain
		go c.writeLoop()
	}
}

// writeLoop sends what requests that waited have been answered, as much of it at once
// as there is. It ends when nothing is left, within the time that a client may take to
// read.
func (c *tcpConn) writeLoop() {
	defer c.parked.Done()
	var spare []*parkedTCP
	for {
		c.queueing.Lock()
		batch := c.queue
		c.queue = spare
		if c.writing = len(batch) > 0; !c.writing {
			c.queueing.Unlock()
			return
		}
		c.queueing.Unlock()
		for rest := batch; len(rest) > 0; {
			rest = rest[c.sendSome(rest):]
		}
		clear(batch)
		spare = batch[:0]
	}
}

// sendSome sends the first responses of batch in one piece and tells how many they
// were.
func (c *tcpConn) sendSome(batch []*parkedTCP) (n int) {
	msgs := batch[0].framed()
	n = 1
	if len(batch) > 1 {
		buf := c.t.joined.Get().(*[flushSize]byte)
		defer c.t.joined.Put(buf)
		size := 0
		for n = 0; n < len(batch) && size+lengthSize+len(batch[n].req.Out) <= len(buf); n++ {
			size += copy(buf[size:], batch[n].framed())
		}
		if n = max(n, 1); size > 0 {
			msgs = buf[:size]
		}
	}
	var b stats.Batch
	for _, k := range batch[:n] {
		answered(&b, &k.req)
		c.t.cfg.Worker.Shared.Observe(&k.req)
	}
	c.t.cfg.Worker.Stats.Publish(&b) // first: who has an answer finds it counted
	if c.send(msgs) != nil {
		b[stats.SendFailed] += uint64(n)
	}
	for i, k := range batch[:n] {
		k.leave(&b)
		batch[i] = nil
	}
	return n
}

// framed is the response with its length in front.
func (k *parkedTCP) framed() []byte {
	buf, out := k.reply[:], k.req.Out
	if &out[0] != &buf[lengthSize] { // it outgrew the room
		buf = make([]byte, lengthSize+len(out))
		copy(buf[lengthSize:], out)
	}
	return frame(buf, out)
}

func (k *parkedTCP) leave(b *stats.Batch) {
	c, cfg := k.c, &k.c.t.cfg
	cfg.Worker.Stats.Publish(b)
	c.last.Store(int64(cfg.Now())) // before the slot: the connection is idle from here on
	k.ended()
	k.c = nil
	c.t.parkings.Put(k)
	<-c.slots
	c.parked.Done()
}
