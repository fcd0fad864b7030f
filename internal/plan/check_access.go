package plan

import (
	"encoding/hex"
	"fmt"
)

// secretSize is the octets of a cookie secret: the key of SipHash-2-4
// (RFC 9018 §4.4).
const secretSize = 16

func (c *checker) access() {
	a := c.plan.Access
	c.prefixes("access.allow", "access.allow", a.Allow)
	c.prefixes("access.deny", "access.deny", a.Deny)
	first := map[string]Pos{}
	for i, l := range a.Listeners {
		path := fmt.Sprintf("access.listeners[%d]", i)
		c.listener(l.Pos, "access.listeners.listen", l.Listen)
		c.prefixes(path+".allow", "access.listeners.allow", l.Allow)
		c.prefixes(path+".deny", "access.listeners.deny", l.Deny)
		if pos, ok := first[l.Listen.String()]; ok && l.Listen.Addr.IsValid() {
			c.add(l.Pos, "remove one", "access.listeners: %s is named twice, first at %s", l.Listen, pos)
			continue
		}
		first[l.Listen.String()] = l.Pos
	}
}

func (c *checker) clientLimits() {
	l := c.plan.Limits
	c.prefixes("limits.exempt", "limits.exempt", l.Exempt)
	if octets, err := hex.DecodeString(l.Cookies.Secret); l.Cookies.Secret != "" && (err != nil || len(octets) != secretSize) {
		// The text of the secret is shown to nobody, not even when it is wrong.
		c.add(c.plan.At("limits.cookies.secret"), "make one with: openssl rand -hex 16", "limits.cookies.secret: expected %d hexadecimal digits", 2*secretSize)
	}
}
