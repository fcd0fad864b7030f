package sink

import (
	"context"
	"fmt"
	"net"
	"time"
)

const (
	// writeLimit is how long a peer may take for a batch: one that reads a few
	// kilooctets a second is as good as none.
	writeLimit = 10 * time.Second
	// dialLimit is how long a connection and its first words may take.
	dialLimit = 10 * time.Second
	// farewell is how long a peer is waited for that has been told goodbye.
	farewell = time.Second
	// streamRows is the rows of a batch that goes to a connection or a file: few, so
	// that a peer that goes away takes few with it.
	streamRows = 1024
)

// connection is an outlet over one connection, which is made when it is needed and
// made anew when the peer went away.
type connection struct {
	network, address string
	env              Env
	packets          bool // an item is a datagram

	// What some protocols say; nil is nothing.
	hello func(conn net.Conn) error
	bye   []byte
	// watch reads until the peer has nothing more to expect from us.
	watch func(conn net.Conn)

	conn net.Conn
	gone chan struct{} // closed when watch has returned
}

// connect makes the connection if there is none.
func (c *connection) connect(ctx context.Context) error {
	if c.conn != nil {
		select {
		case <-c.gone:
			c.hangUp()
		default:
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := c.env.Dial(ctx, c.network, c.address)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if c.hello != nil {
		free := c.bound(ctx, conn, dialLimit)
		err = c.hello(conn)
		free()
		if err == nil {
			err = conn.SetDeadline(time.Time{})
		}
		if err != nil {
			_ = conn.Close() // the reason is told already
			return fmt.Errorf("greeting: %w", err)
		}
	}
	c.conn, c.gone = conn, make(chan struct{})
	if c.watch != nil {
		go c.watchLoop(conn, c.gone) // until hangUp, which waits for it
	}
	return nil
}

// watchLoop notes a peer that goes away while nothing is being sent.
func (c *connection) watchLoop(conn net.Conn, gone chan struct{}) {
	defer close(gone)
	c.watch(conn)
}

// bound breaks off what is done with conn when ctx ends, or after limit. The caller
// calls free afterwards.
func (c *connection) bound(ctx context.Context, conn net.Conn, limit time.Duration) (free func() bool) {
	_ = conn.SetWriteDeadline(c.env.Wall().Add(limit)) // fails on a closed connection, and so does what follows
	if c.gone == nil {
		_ = conn.SetReadDeadline(c.env.Wall().Add(limit))
	}
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

func (c *connection) send(ctx context.Context, b *batch) (items int, err error) {
	if err = c.connect(ctx); err != nil {
		return 0, err
	}
	conn := c.conn
	defer c.bound(ctx, conn, writeLimit)()
	if c.packets {
		for ; items < b.left() && err == nil; items++ {
			if _, err = conn.Write(b.item(items)); err != nil {
				break
			}
		}
	} else {
		var n int
		n, err = conn.Write(b.rest())
		items = b.within(n)
	}
	if err != nil {
		c.hangUp()
		return items, fmt.Errorf("writing: %w", err)
	}
	return items, nil
}

// hangUp closes the connection. Its error says nothing about what was sent.
func (c *connection) hangUp() {
	_ = c.conn.Close()
	if c.watch != nil {
		<-c.gone
	}
	c.conn, c.gone = nil, nil
}

func (c *connection) close(ctx context.Context) error {
	if c.conn == nil {
		return nil
	}
	defer c.hangUp()
	if c.bye == nil {
		return nil
	}
	defer c.bound(ctx, c.conn, farewell)()
	if _, err := c.conn.Write(c.bye); err != nil {
		return fmt.Errorf("saying goodbye: %w", err)
	}
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-c.gone:
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}
